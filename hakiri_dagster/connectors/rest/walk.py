"""A walk over the pages of an API, from the first to the last, one page in memory at a time.

What a walk promises: every record of every page that the API shows comes out once, in its order, or the walk raises.
An unchanged record that is shown again because pages have shifted meanwhile is passed over, as long as it is among the
latest `REMEMBERED` and has a key; a changed one comes again, as it is now. What the API leaves out because pages have
shifted, nobody can see.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import islice
from typing import Final

import xxhash

from hakiri_dagster.connectors.json.raw_text import Record
from hakiri_dagster.connectors.json.strict import has_repeated_keys
from hakiri_dagster.connectors.rest.api import Pairs
from hakiri_dagster.connectors.rest.circles import CircleWatch
from hakiri_dagster.connectors.rest.client import Client
from hakiri_dagster.connectors.rest.explosion import Explosion
from hakiri_dagster.connectors.rest.flattening import Flattening
from hakiri_dagster.connectors.rest.moments import Moments
from hakiri_dagster.connectors.rest.orders import Order
from hakiri_dagster.connectors.rest.pages import Page, fetch
from hakiri_dagster.connectors.rest.pagination import Pagination
from hakiri_dagster.connectors.rest.parting import params_of_part, path_of_part, record_of_part
from hakiri_dagster.connectors.rest.urls import with_params
from hakiri_dagster.errors import SourceError, SourceUnavailable
from hakiri_dagster.manifest.api_urls import judged
from hakiri_dagster.planning.chunks import Part
from hakiri_dagster.security.url_guard import SafeUrl

REMEMBERED: Final = 20_000
_TOO_OFTEN: Final = 3
_ROWS_AT_ONCE: Final = 1000


@dataclass(frozen=True, slots=True)
class Collection:
    """What a table is to the API. `has_key`: a record that comes twice unchanged is the same record."""

    path: str
    params: Pairs
    records: str | None
    pagination: Pagination
    most_pages: int
    has_key: bool = False
    flattening: Flattening = field(default_factory=Flattening)
    moments: Moments = field(default_factory=Moments)
    part: Part | None = None
    explosion: Explosion | None = None

    @property
    def constant_params(self) -> Pairs:
        """What no pagination of ours changes. An API's own links may, and a token says then to what."""
        return tuple((name, value) for name, value in self.params if name not in self.pagination.steers)

    @property
    def cursor_member(self) -> str | None:
        """Of the records that pages hold, where rows are made of them."""
        return None if self.explosion is None else self.explosion.cursor_member

    def rows(self, records: Iterable[tuple[Record, Record]]) -> Iterator[Record]:
        """As a sample of them tells columns. `records`: each as its table has it, and as it was sent."""
        for record, sent in records:
            if self.explosion is None:
                yield record
            elif isinstance(sent.value, Mapping):
                yield self._of_its_part(self.explosion.stub(record))
                yield from map(self._of_its_part, self.explosion.children(record, sent))

    def children(self, client: Client, page: Page, record: Record, sent: Record) -> Iterator[Sequence[Record]]:
        """Some at a time: one record may have a million of them."""
        explosion = self.explosion
        if explosion is None:
            yield [record]
            return
        if has_repeated_keys(sent.text):
            yield [sent]  # which is quarantined, for that reason
            return
        link = explosion.rest_of(sent)
        if link is None or explosion.continued is None:
            yield from _some_at_once(map(self._of_its_part, explosion.children(record, sent)))
            return
        at, passed = client.next_url(page.at, link, "the URL of a list's elements"), 0
        for elements in _listed(client, self, at, explosion.continued.params):
            yield [self._of_its_part(child) for child in explosion.elements(record, elements, passed)]
            passed += len(elements)

    def _of_its_part(self, child: Record) -> Record:
        return record_of_part(child, self.part)

    def of_part(self, part: Part | None) -> Collection:
        return replace(self, path=path_of_part(self.path, part), params=params_of_part(self.params, part), part=part)

    def record(self, sent: Record) -> Record:
        """As its table has it. One with a repeated key stays as it was sent, so that it is quarantined for that."""
        reshaped = bool(self.moments.names) or not self.flattening.does_nothing
        if reshaped and has_repeated_keys(sent.text):
            return record_of_part(sent, self.part)
        return record_of_part(self.moments(self.flattening(sent)), self.part)


def first_page(client: Client, collection: Collection, params: Pairs = ()) -> Page:
    return fetch(client, first_url(client, collection, params), collection.records)


def first_url(client: Client, collection: Collection, *asked: Pairs) -> SafeUrl:
    """What the walk asks wins over what the table always asks, and that over where pages begin."""
    at = client.url(collection.path)
    url = at.url
    for pairs in (collection.pagination.first_params(), collection.params, *asked):
        url = with_params(url, pairs)
    return judged(url, allow_loopback=at.loopback)


@dataclass(frozen=True, slots=True)
class Stretch:
    """So many pages of a walk, from the one on that the token `after` leads to."""

    after: str | None
    pages: int


def walked(
    client: Client,
    collection: Collection,
    params: Pairs = (),
    order: Order | None = None,
    stretch: Stretch | None = None,
) -> Generator[Sequence[Record], None, str]:
    """The records of each page. Answers what leads on from the end of a stretch; nothing where no page follows."""
    watch = _Watch(client, collection.most_pages)
    passed = _Passed()
    following = None if order is None else order.follow()
    first = _beginning(client, collection, params, stretch)
    at: SafeUrl | None = first
    pages = 0
    while at is not None:
        watch.asks(at)
        page = _first_of(client, at, collection, stretch) if pages == 0 else fetch(client, at, collection.records)
        pages += 1
        watch.sees(page)
        sent = [(collection.record(one), one) for one in page.records]
        new = passed.unseen(sent)
        if following is not None:
            following.takes([record for record, _ in new], client.shown(page.at))
        yield from _rows(client, collection, page, new if collection.has_key else sent)
        if following is not None and following.done:
            return ""
        at = collection.pagination.after(client, page)
        again = following.again() if at is not None and following is not None else None
        if again is not None and (asked := first_url(client, collection, params, again)) != first:
            first = at = asked  # else more records have one cursor than fit a page, and are passed by their number
        if at is not None and stretch is not None and pages >= stretch.pages:
            return client.token(at, collection.constant_params)
    return ""


def _beginning(client: Client, collection: Collection, params: Pairs, stretch: Stretch | None) -> SafeUrl:
    """What the table asks now holds for pages that were told of before."""
    if stretch is None or stretch.after is None:
        return first_url(client, collection, params)
    return client.page_of(stretch.after, collection.constant_params)


def _first_of(client: Client, at: SafeUrl, collection: Collection, stretch: Stretch | None) -> Page:
    try:
        return fetch(client, at, collection.records)
    except SourceError as error:
        if stretch is None or stretch.after is None or isinstance(error, SourceUnavailable):
            raise
        raise SourceError(
            f"the API does not take the token any more that was kept where the last segment ended: {error.what}",
            hint="tokens expire: walk the table again from its beginning, `hakiri run … --chunk segment-000001`",
        ) from error


def _rows(
    client: Client, collection: Collection, page: Page, records: Sequence[tuple[Record, Record]]
) -> Iterator[Sequence[Record]]:
    if collection.explosion is None:
        yield [record for record, _ in records]
        return
    few: list[Record] = []
    for record, sent in records:
        for children in collection.children(client, page, record, sent):
            few += children
            if len(few) >= _ROWS_AT_ONCE:
                yield few
                few = []
    yield few


def _some_at_once(records: Iterator[Record]) -> Iterator[Sequence[Record]]:
    while some := list(islice(records, _ROWS_AT_ONCE)):
        yield some


def _listed(client: Client, collection: Collection, at: SafeUrl, params: Pairs) -> Iterator[Sequence[Record]]:
    """Pages of a list of its own, which go like those of the table."""
    watch = _Watch(client, collection.most_pages)
    url = at.url
    for pairs in (collection.pagination.first_params(), params):
        url = with_params(url, pairs)
    to: SafeUrl | None = judged(url, allow_loopback=at.loopback)
    while to is not None:
        watch.asks(to)
        page = fetch(client, to, collection.records)
        watch.sees(page)
        yield page.records
        to = collection.pagination.after(client, page)


class _Watch:
    """A token that repeats for ever, or pages without end, are an error and no load."""

    def __init__(self, client: Client, most_pages: int) -> None:
        self._client = client
        self._most = most_pages
        self._asked = CircleWatch()
        self._seen = CircleWatch()
        self._pages = self._met = 0

    def asks(self, at: SafeUrl) -> None:
        self._pages += 1
        if self._pages > self._most:
            raise SourceError(
                f"{self._client.shown(at)}: more than {self._most:,} pages follow each other",
                hint="if the API really has more, raise `max_pages`",
            )
        if self._asked.meets(_digest([at.url])):
            raise SourceError(
                f"{self._client.shown(at)}: the pages go round in circles: this one was asked for before",
                hint="check `pagination`: the API gives a next page that was there already",
            )

    def sees(self, page: Page) -> None:
        """Once may be chance: as many new records as a page has shift its records to the next."""
        if page.records and self._seen.meets(_digest(record.text for record in page.records)):
            self._met += 1
        if self._met >= _TOO_OFTEN:
            raise SourceError(
                f"{self._client.shown(page.at)}: the pages go round in circles: these very records have come before",
                hint="check `pagination`: does the API know these parameters?",
            )


class _Passed:
    """Digests of the latest records."""

    def __init__(self) -> None:
        self._digests: OrderedDict[int, None] = OrderedDict()

    def unseen(self, records: Sequence[tuple[Record, Record]]) -> list[tuple[Record, Record]]:
        """Each as its table has it, and as it was sent."""
        new = []
        for record, sent in records:
            digest = _digest([record.text])
            if digest in self._digests:
                continue
            self._digests[digest] = None
            new.append((record, sent))
        while len(self._digests) > REMEMBERED:
            self._digests.popitem(last=False)
        return new


def _digest(texts: Iterable[str]) -> int:
    told = xxhash.xxh3_128()
    for text in texts:
        told.update(text.encode("utf-8", "surrogatepass"))
        told.update(b"\0")
    return told.intdigest()
