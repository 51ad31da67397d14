"""The settings of APIs that are known by name. Checked without any I/O."""

from __future__ import annotations

import re
from typing import Annotated, Any

from pydantic import BeforeValidator, Field, model_validator

from hakiri_dagster.manifest.field_types import Model, Whole, quoted, wrong
from hakiri_dagster.manifest.rest_spec import BaseUrl, HeaderValue, RetrySpec, TimeoutSpec

_REPO = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]*/[A-Za-z0-9._-]+")


def _repo(value: Any) -> Any:
    if isinstance(value, str) and (not _REPO.fullmatch(value) or value.rpartition("/")[2] in (".", "..")):
        raise wrong(f"{quoted(value)} is not a repository", "write it like `owner/name`")
    return value


RepoName = Annotated[str, Field(examples=["torvalds/linux"]), BeforeValidator(_repo)]


class RequestSettings(Model):
    """What requests to any API may need to be told."""

    timeout: TimeoutSpec = Field(default_factory=TimeoutSpec, description="How long is waited.")
    retry: RetrySpec = Field(default_factory=RetrySpec, description="When requests are tried again.")
    max_body_mib: Whole = Field(default=64, ge=1, le=1024, description="How large one answer may be, unpacked.")
    max_pages: Whole = Field(
        default=100_000, ge=1, le=100_000_000, description="After so many pages a walk is taken to have no end."
    )
    max_connections: Whole = Field(
        default=4, ge=1, le=64, description="How many chunks of one table are asked for at once, at most."
    )

    def requests(self, *, retry: RetrySpec) -> dict[str, Any]:
        """As the settings of `rest`."""
        return {
            "timeout": self.timeout,
            "retry": retry,
            "max_body_mib": self.max_body_mib,
            "max_pages": self.max_pages,
            "max_connections": self.max_connections,
        }


class GithubConfig(RequestSettings):
    """What `connector = "github"` asks."""

    repo: RepoName | None = Field(default=None, description="The repository: `owner/name`.")
    repos: tuple[RepoName, ...] = Field(
        default=(),
        description="Several repositories, instead of `repo`: each has a history of its own in the same tables, told by"
        " the column `repo`.",
    )
    token: HeaderValue | None = Field(
        default=None,
        repr=False,
        min_length=1,
        description="`${NAME}`: a token. Default: none; public repositories need none.",
    )
    base_url: BaseUrl = Field(
        default="https://api.github.com",
        description="Where the API is; of GitHub Enterprise `https://<host>/api/v3`.",
    )

    @model_validator(mode="after")
    def _which(self) -> GithubConfig:
        if (self.repo is None) == (not self.repos):
            said = "neither `repo` nor `repos` is there" if self.repo is None else "`repo` and `repos` are both there"
            raise wrong(said, 'write `repo = "owner/name"`, or `repos = ["owner/one", "owner/two"]`')
        return self


class StripeConfig(RequestSettings):
    """What `connector = "stripe"` asks."""

    api_key: HeaderValue = Field(repr=False, min_length=1, description="`${NAME}`: a key that may read.")
    version: HeaderValue = Field(
        default="2024-06-20", min_length=1, description="The version of the API whose objects are asked for."
    )
    account: HeaderValue | None = Field(
        default=None, min_length=1, description="The connected account (`acct_…`) that is read. Default: the key's own."
    )
    base_url: BaseUrl = Field(default="https://api.stripe.com/v1", description="Where the API is.")
