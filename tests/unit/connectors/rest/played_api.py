"""An API that is played without a network: a test writes what it says."""

from __future__ import annotations

import json
from collections.abc import Callable
from http.client import HTTPMessage
from typing import Any
from urllib.parse import parse_qsl, urlsplit

from hakiri_dagster.connectors.network import Network
from hakiri_dagster.connectors.rest.api import Api, Credentials
from hakiri_dagster.connectors.rest.client import Client, Result
from hakiri_dagster.connectors.rest.exchange import Answer
from hakiri_dagster.security.url_guard import SafeUrl


class PlayedApi(Client):
    def __init__(self, answer: Callable[[dict[str, str]], Any]) -> None:
        super().__init__(Api("https://api.example.com", Credentials.query("key", "key_of_the_source")), Network())
        self.asked: list[dict[str, str]] = []
        self._says = answer

    def get(self, at: SafeUrl, read: Callable[[Answer], Result]) -> Result:
        self.asked.append(dict(parse_qsl(urlsplit(at.url).query)))
        return read(Answer(200, "OK", HTTPMessage(), json.dumps(self._says(self.asked[-1])).encode()))
