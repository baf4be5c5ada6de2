"""Click models by their names."""

from twotowers.errors import InputError, check_choice
from twotowers.experiment.components import build_model, component_of, components, find
from twotowers.models.mixed import Mixed
from twotowers.models.names import MODELS
from twotowers.models.protocol import ClickModel


def model_of(given: str | type[ClickModel] | ClickModel) -> tuple[str, ClickModel]:
    """The name of a click model, and the model."""
    if isinstance(given, str) and "+" in given:
        given = Mixed(given.split("+"))
    if isinstance(given, Mixed):
        return "+".join(given.models), given
    if isinstance(given, ClickModel):
        own = component_of("models", type(given))
    elif isinstance(given, str | type):
        if isinstance(given, str) and given not in MODELS:
            check_choice(given, [*MODELS, *components("models")], field="model")
        name = MODELS.get(given, given) if isinstance(given, str) else given
        own, given = find("models", name), build_model(name)
    else:
        raise InputError(
            f"a {type(given).__name__} was given", field="model", expected="a name or a click model"
        )
    return {name: each for each, name in MODELS.items()}.get(own.name, own.name), given


def fitted_model(given: str | type[ClickModel] | ClickModel) -> tuple[str, ClickModel]:
    """`model_of`; InputError if gradient descent alone fits it, to features."""
    name, model = model_of(given)
    if model.counts is None and model.expectations is None:
        raise InputError(
            f"{name} has neither counts nor expectations",
            field="model",
            expected="a model that counting or EM fits",
        )
    return name, model
