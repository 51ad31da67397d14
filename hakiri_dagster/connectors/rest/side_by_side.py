"""Questions of one look, several at once."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from typing import TypeVar

Asked = TypeVar("Asked")
Answer = TypeVar("Answer")


def answers_to(questions: Sequence[Asked], ask: Callable[[Asked], Answer], *, at_once: int) -> Mapping[Asked, Answer]:
    """In the order of the questions. Where one raises nobody wants the others' answers: those that have begun come to
    their end, and no other begins."""
    threads = ThreadPoolExecutor(min(at_once, len(questions)))
    try:
        asked = {question: threads.submit(ask, question) for question in questions}
        wait(asked.values(), return_when=FIRST_EXCEPTION)
    finally:
        threads.shutdown(cancel_futures=True)
    # Questions begin in their order, so that one that has raised comes before all that never began.
    return {question: answer.result() for question, answer in asked.items()}
