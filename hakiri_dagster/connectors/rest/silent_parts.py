"""A look at a table asks of each of its parts. An API that does not answer for some is asked for these once more when
the others have been: after that they are left out. One that answers for none is not asked for hundreds of them."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Final, TypeVar

from hakiri_dagster.connectors.rest.side_by_side import answers_to
from hakiri_dagster.errors import HakiriError
from hakiri_dagster.planning.chunks import Part

Answer = TypeVar("Answer")
Ask = Callable[[Part | None], Answer | HakiriError]

_ROUNDS: Final = 2


def answers_of_parts(
    parts: Sequence[Part | None], ask: Ask[Answer], *, at_once: int, once_more: bool
) -> Mapping[Part | None, Answer | HakiriError]:
    """In the order of the parts; an error is why there is no answer for one."""
    answers = dict(answers_to(parts, _SilentRow(_ROUNDS * at_once).watching(ask), at_once=at_once))
    silent = [part for part, answer in answers.items() if is_silence(answer)]
    if once_more and 0 < len(silent) < len(parts):
        answers |= answers_to(silent, ask, at_once=at_once)
    return answers


def is_silence(answer: object) -> bool:
    return isinstance(answer, HakiriError) and answer.kind == "transient"


class _SilentRow:
    """Raises when so many parts in a row were not answered for: it is the API that is down."""

    def __init__(self, longest: int) -> None:
        self._longest = longest
        self._length = 0
        self._lock = threading.Lock()

    def watching(self, ask: Ask[Answer]) -> Ask[Answer]:
        def watched(part: Part | None) -> Answer | HakiriError:
            answer = ask(part)
            with self._lock:
                self._length = self._length + 1 if is_silence(answer) else 0
                if isinstance(answer, HakiriError) and self._length >= self._longest:
                    raise answer
            return answer

        return watched
