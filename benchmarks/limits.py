"""Lower bounds of an epoch's time: its operations at the machine's rates."""

from __future__ import annotations

import numpy as np

from benchmarks.fits import counts_training
from benchmarks.scaling import BASE

HIDDEN = 32
FLOAT = 4


def cell_bytes(sessions: int, queries: int, documents: int, temperature: float) -> int:
    """Bytes of a cell's impressions and clicks, in the smallest type that holds the largest."""
    shown = sessions / queries * ((1 - temperature) + temperature / documents)
    return 2 * np.min_scalar_type(int(shown)).itemsize


def document_flops(tower: str, width: int, *, train: bool) -> float:
    """Floating-point operations of one document: forward, and backward if training.

    Backward, the first layer needs the gradient of its weights only. The others also need that of
    their inputs.
    """
    first = 2 * width * (1 if tower == "linear" else HIDDEN)
    rest = 0 if tower == "linear" else 2 * (HIDDEN * HIDDEN + HIDDEN)
    return 2 * first + 3 * rest if train else first + rest


def epoch_work(
    *,
    tower: str,
    queries: int,
    documents: int,
    width: int,
    sessions: int,
    temperature: float,
    lanes: int,
) -> dict:
    """Operations of an epoch: its steps, and a validation pass over a third of the queries.

    Returns:
        flops of products, cells with a loss (in validation) or a gradient (in training), and
        bytes to read.
    """
    training = counts_training(f"fit-{tower}")
    trained, validated = training["steps"] * training["batch"], queries // 3
    flops = trained * document_flops(tower, width, train=True)
    flops += validated * document_flops(tower, width, train=False)
    lists = trained + validated
    # Features are read once for all lanes, counts once for each lane.
    cell = cell_bytes(sessions, queries, documents, temperature)
    read = lists * documents * (width * FLOAT + lanes * documents * cell)
    return {
        "flops": flops * documents * lanes,
        "losses": validated * documents**2 * lanes,
        "gradients": trained * documents**2 * lanes,
        "bytes": read,
    }


def predicted(results: dict) -> list[dict]:
    """Rows of the lanes grid: the least time of each kind of work, and the measured time."""
    rates = results["roofline"]["rows"][0]
    rows = []
    for row in results["scaling"]["rows"]:
        if row["grid"] != "lanes":
            continue
        work = epoch_work(tower=row["tower"], **{name: row[name] for name in BASE})
        times = {
            "products": work["flops"] / rates["gemm_gflops"] / 1e9,
            "cells_time": work["losses"] / rates["losses_g_s"] / 1e9
            + work["gradients"] / rates["gradients_g_s"] / 1e9,
            "bytes_time": work["bytes"] / rates["copy_gb_s"] / 1e9,
        }
        limit, measured = sum(times.values()), row["seconds"] / row["epochs"]
        rows.append(
            {"tower": row["tower"], "lanes": row["lanes"], **times}
            | {"limit": limit, "measured": measured, "share": limit / measured}
        )
    return rows


def extrapolations(results: dict) -> list[dict]:
    """Estimated time and memory of logs that were not fitted here, from the measured rates."""
    sizes = [
        {"sessions": 10**9, "queries": 3000, "temperature": 0},
        {"sessions": 10**9, "queries": 3000, "temperature": 1},
        {"sessions": 10**9, "queries": 4 * 10**6, "temperature": 1},
    ]
    return [
        {
            "what": f"{size['sessions']:,} sessions, {size['queries'] * documents:,} pairs, "
            f"temperature {size['temperature']:g}",
            "simulation": simulation_seconds(results["simulator"]["rows"], **size),
            "epoch": size["queries"] * query_seconds(results["scaling"]["rows"]),
            "features_gb": size["queries"] * documents * BASE["width"] * FLOAT / 1e9,
            "counts_gb": size["queries"]
            * documents**2
            * cell_bytes(documents=documents, **size)
            / 1e9,
        }
        for documents in [BASE["documents"]]
        for size in sizes
    ]


def simulation_seconds(rows: list[dict], *, sessions: int, queries: int, temperature: float):
    """Scaled from the longest log measured at the temperature.

    Without shuffling, time grows with the shown cells. With shuffling, it grows with the sessions.
    """
    longest = [
        row for row in rows if (row["simulator"], row["temperature"]) == ("counts", temperature)
    ][-1]
    size = "queries" if temperature == 0 else "sessions"
    return longest["seconds"] * {"queries": queries, "sessions": sessions}[size] / longest[size]


def query_seconds(rows: list[dict]) -> float:
    """Seconds to train the deep tower on one query once, from the base size."""
    base = next(
        row for row in rows if (row["grid"], row["tower"], row["lanes"]) == ("lanes", "deep", 1)
    )
    training = counts_training("fit-deep")
    return base["seconds"] / base["epochs"] / training["steps"] / training["batch"]
