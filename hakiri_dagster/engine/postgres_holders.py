"""Who needs the server: processes that entered and did not leave, and the operator who started it for good."""

from __future__ import annotations

import json
import secrets
from dataclasses import dataclass
from pathlib import Path

from hakiri_dagster.engine.postgres_home import write_private
from hakiri_dagster.engine.process_identity import ProcessIdentity, current_boot_id


@dataclass(frozen=True, slots=True)
class Holders:
    """To be used under `locked(home)` only."""

    cluster: Path

    def enter(self) -> str:
        token = secrets.token_hex(8)
        self._write({**self.living(), token: ProcessIdentity.current()})
        return token

    def leave(self, token: str) -> None:
        self._write({key: holder for key, holder in self.living().items() if key != token})

    def keep(self) -> None:
        write_private(self._persistent, current_boot_id())

    def release(self) -> None:
        self._persistent.unlink(missing_ok=True)

    @property
    def needed(self) -> bool:
        return self.kept or bool(self.living())

    @property
    def kept(self) -> bool:
        """A start for good lasts until the machine goes down: the next boot has nobody who asked for it."""
        return self._persistent.exists() and self._persistent.read_text() == current_boot_id()

    def living(self) -> dict[str, ProcessIdentity]:
        """One from another host cannot use a server on 127.0.0.1, so it does not count either."""
        try:
            entries = json.loads(self._file.read_text())
        except (FileNotFoundError, json.JSONDecodeError):
            return {}
        parsed = {token: ProcessIdentity.parse(text) for token, text in entries.items()}
        return {token: holder for token, holder in parsed.items() if holder.is_alive_here()}

    def _write(self, holders: dict[str, ProcessIdentity]) -> None:
        write_private(self._file, json.dumps({token: str(holder) for token, holder in holders.items()}))

    @property
    def _file(self) -> Path:
        return self.cluster / "holders.json"

    @property
    def _persistent(self) -> Path:
        return self.cluster / "persistent"
