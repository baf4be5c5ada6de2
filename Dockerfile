# `make figures` in a container:
#     docker build --tag two-towers .
#     docker run --rm --volume "$PWD/figures:/two-towers/figures" two-towers
FROM python:3.13-slim-bookworm

# LightGBM needs libgomp1; the page names the commit that git tells.
RUN apt-get update \
    && apt-get install --yes --no-install-recommends git libgomp1 make \
    && rm -rf /var/lib/apt/lists/*

WORKDIR /two-towers

# Before the rest, so that an edit does not install the packages again.
COPY Makefile requirements.txt ./
RUN make .venv/installed

COPY . .
CMD ["make", "figures"]
