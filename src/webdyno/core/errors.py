"""The two ways in which webdyno gives up with a message for people instead of a traceback."""

from webdyno.core.hiding import hidden


class _MessageError(Exception):
    """A message, without the secrets that a server or a program may have said."""

    def __str__(self) -> str:
        return hidden(super().__str__())


class UserError(_MessageError):
    """Something in the command, a file or a setting is wrong.

    The message names the file, line or flag, says what is wrong and what to do about it.
    """


class OperationError(_MessageError):
    """A server, tool or resource of this machine failed although the input was right.

    The message says what failed, with the end of its log where there is one, and what to do.
    """
