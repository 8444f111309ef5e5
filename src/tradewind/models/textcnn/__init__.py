"""A convolutional network for texts: Kim (2014), as Hader made it configurable."""

from tradewind.models.textcnn.estimator import TextCNN

__all__ = ["TextCNN"]
