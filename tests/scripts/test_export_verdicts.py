"""Tables of docs/verdicts: recorded verdicts, gates that fail, the authors' own results."""

import pandas as pd

from scripts.export_verdicts import FOLDER, PAGE, of_authors, of_records, summary
from scripts.filling import filled


def test_files_and_page_have_what_was_recorded():
    """`python -m scripts.export_verdicts` writes them, and so does `make record`."""
    tables = of_records()
    for name, table in tables.items():
        written = (FOLDER / f"{name}.csv").read_text(encoding="utf-8")
        assert table.to_csv(index=False, lineterminator="\n") == written, name
    page = PAGE.read_text(encoding="utf-8")
    assert filled(page, {"recorded": summary(tables["recorded"])}) == page


def test_claims_that_fail_on_the_authors_numbers():
    """Those that were seen on printed means, by hand; and the file has them."""
    table = of_authors(["zhang2023"])
    assert table["fails"].tolist() == ["1b, 3b, 4c"]
    own = pd.read_csv(FOLDER / "authors.csv", keep_default_na=False).query("paper == 'zhang2023'")
    assert own.to_numpy().tolist() == table.to_numpy().tolist()
