"""Checks the parameters of TextCNN, and makes from them the network and the training settings."""

from __future__ import annotations

from numbers import Integral
from typing import TYPE_CHECKING, get_args

from tradewind.checks import (
    flag,
    one_of,
    or_none,
    positive,
    seed_of,
    share,
    whole,
    whole_numbers,
)
from tradewind.models.devices import choose_device
from tradewind.models.inputs import check_vectors
from tradewind.models.textcnn.model import ACTIVATIONS, Channels, Network
from tradewind.models.textcnn.optimizers import RATES
from tradewind.models.textcnn.training import Settings

if TYPE_CHECKING:
    from tradewind.models.textcnn.estimator import TextCNN


def make_settings(model: TextCNN) -> Settings:
    """The settings of the training. Checks all parameters."""
    one_of("unknown", model.unknown, ("random", "word2vec"))
    share("validation_fraction", model.validation_fraction)
    flag("balance", model.balance)
    whole("window", model.window, 1)
    check_vectors("vectors", model.vectors)
    make_network(model, 2)
    return Settings(
        optimizer=one_of("optimizer", model.optimizer, ("adadelta", "adam")),
        rate=or_none(positive, "learning_rate", model.learning_rate) or RATES[model.optimizer],
        batch_size=whole("batch_size", model.batch_size, 1),
        max_epochs=whole("max_epochs", model.max_epochs, 1),
        patience=or_none(whole, "patience", model.patience, 1),
        l2_max=or_none(positive, "l2_max", model.l2_max),
        seed=seed_of(model.random_state),
        device=choose_device(model.device),
        verbose=flag("verbose", model.verbose),
    )


def make_network(model: TextCNN, n_classes: int) -> Network:
    """The shape of the network that the parameters describe. Checks these parameters."""
    sizes = whole_numbers("filter_sizes", model.filter_sizes, 1)
    if isinstance(model.filters, Integral):
        counts = (whole("filters", model.filters, 1),) * len(sizes)
    else:
        counts = whole_numbers("filters", model.filters, 1)
    if len(counts) != len(sizes):
        raise ValueError(
            "filters must have a number for each of filter_sizes, but got filter_sizes="
            f"{model.filter_sizes!r} and filters={model.filters!r}"
        )
    given = model.vectors
    return Network(
        channels=one_of("channels", model.channels, get_args(Channels)),
        dimensions=whole("dimensions", model.dimensions, 1) if given is None else given.dimensions,
        filters=tuple(zip(sizes, counts, strict=True)),
        activation=one_of("activation", model.activation, ACTIVATIONS),
        bias=flag("bias", model.bias),
        hidden=whole("hidden", model.hidden, 0),
        outputs=1 if n_classes == 2 else n_classes,
        dropout=(share("d0", model.d0), share("d1", model.d1), share("d2", model.d2)),
    )
