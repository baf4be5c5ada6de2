"""Settings of short fits."""


def short(learning_rate: float, *, batch: int, epochs: int, **others) -> dict:
    """Training that goes on to its last epoch, unless `others` have a patience."""
    rest = {"patience": epochs, "min_delta": 0.0} | others
    return {"learning_rate": learning_rate, "batch": batch, "epochs": epochs, **rest}
