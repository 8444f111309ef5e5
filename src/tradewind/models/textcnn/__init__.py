"""A convolutional network for texts: Kim (2014), with the parameters of Hader's thesis."""

from tradewind.models.textcnn.estimator import TextCNN

__all__ = ["TextCNN"]
