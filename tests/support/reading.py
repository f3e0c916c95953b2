"""Reading streams and watches to their end."""

from callslip import RunFailed


async def read_to_end(stream):
    """Return all items, and the exception of a run that failed; `None` of one that did not."""
    items = []
    try:
        async for item in stream:
            items.append(item)
    except RunFailed as error:
        return items, error
    return items, None
