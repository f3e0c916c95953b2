"""Images of PIL in modes that PNG does not have."""

import math
from io import BytesIO

import PIL.Image
import pytest

from callslip import Image


def values_of(mode, *values):
    """The pixels of an image of these values, as they are drawn."""
    image = PIL.Image.new(mode, (len(values), 1))
    image.putdata(values)
    return [*PIL.Image.open(BytesIO(Image(image).data)).convert("L").tobytes()]


@pytest.mark.parametrize(
    "mode", ["CMYK", "I", "F", "LAB", "HSV", "YCbCr", "PA", "La", "RGBa", "RGBX", "I;16L"]
)
def test_images_of_modes_that_png_lacks_are_converted(mode):
    image = Image(PIL.Image.new(mode, (3, 2)))
    assert (image.width, image.height, image.media_type) == (3, 2, "image/png")


@pytest.mark.parametrize("mode", ["I", "F"])
def test_numbers_become_levels_of_grey(mode):
    assert values_of(mode, 0, 100, 255) == [0, 100, 255]
    assert values_of(mode, 0, 1, 0) == [0, 255, 0]
    assert values_of(mode, -10, 490, 990) == [0, 127, 255]
    assert values_of(mode, 700, 700, 700) == [0, 0, 0]
    if mode == "F":
        assert values_of(mode, 0.0, 0.5, 1.0) == [0, 127, 255]
        for odd in (math.nan, math.inf, -math.inf):
            assert len(values_of(mode, odd, 1.0, 2.0)) == 3
