"""The one exception for input that cannot be used."""


class InputError(ValueError):
    """A value, file or setting from outside that cannot be used.

    The message is one line that names the value and what was expected. The
    command-line tools print it and exit with status 2.
    """
