"""Stripe's API, and those that are built like it: lists under `data`, newest first, each page after the last record of
the one before, and times as seconds since 1970."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from hakiri_dagster.manifest.preset_spec import StripeConfig
from hakiri_dagster.manifest.presets.contract import Preset
from hakiri_dagster.manifest.rest_spec import RestConfig
from hakiri_dagster.manifest.spec import BackfillSpec, TableSpec

_BEFORE_STRIPE: Final = "2011-01-01"
"""Nothing in it tells the oldest record of a list; Stripe has been there since 2011."""

_CREATED: Final = {
    "lower": "created[gte]",
    "upper": "created[lt]",
    "format": "epoch",
    "inclusive": True,
    "order": "descending",
}
_COMMON: Final = {"id": "text", "object": "text", "created": "timestamptz", "livemode": "boolean", "metadata": "jsonb"}
_MONEY: Final = {"amount": "bigint", "currency": "text", "status": "text", "description": "text"}

TABLES: Final[Mapping[str, dict[str, str]]] = {
    "balance_transactions": _MONEY
    | {"available_on": "timestamptz", "fee": "bigint", "net": "bigint", "type": "text", "source": "text"}
    | {"exchange_rate": "numeric", "fee_details": "jsonb", "reporting_category": "text"},
    "charges": _MONEY
    | {"amount_captured": "bigint", "amount_refunded": "bigint", "captured": "boolean", "paid": "boolean"}
    | {"refunded": "boolean", "disputed": "boolean", "customer": "text", "invoice": "text", "payment_intent": "text"}
    | {"balance_transaction": "text", "failure_code": "text", "failure_message": "text", "receipt_email": "text"}
    | {"billing_details": "jsonb", "payment_method": "text", "payment_method_details": "jsonb", "outcome": "jsonb"},
    "customers": {"email": "text", "name": "text", "phone": "text", "description": "text", "currency": "text"}
    | {"balance": "bigint", "delinquent": "boolean", "address": "jsonb", "shipping": "jsonb"},
    "disputes": _MONEY | {"charge": "text", "payment_intent": "text", "reason": "text", "evidence": "jsonb"},
    "events": {"type": "text", "api_version": "text", "data": "jsonb", "request": "jsonb"},
    "invoices": {"number": "text", "customer": "text", "subscription": "text", "status": "text", "currency": "text"}
    | {"subtotal": "bigint", "total": "bigint", "tax": "bigint", "amount_due": "bigint", "amount_paid": "bigint"}
    | {"amount_remaining": "bigint", "period_start": "timestamptz", "period_end": "timestamptz"}
    | {"due_date": "timestamptz", "lines": "jsonb", "charge": "text", "payment_intent": "text", "paid": "boolean"},
    "payment_intents": _MONEY
    | {"amount_received": "bigint", "canceled_at": "timestamptz", "customer": "text", "invoice": "text"}
    | {"latest_charge": "text", "payment_method": "text", "last_payment_error": "jsonb"},
    "payouts": _MONEY | {"arrival_date": "timestamptz", "automatic": "boolean", "destination": "text", "type": "text"},
    "prices": {"active": "boolean", "currency": "text", "product": "text", "type": "text", "unit_amount": "bigint"}
    | {"unit_amount_decimal": "numeric", "recurring": "jsonb", "nickname": "text", "lookup_key": "text"},
    "products": {"active": "boolean", "name": "text", "description": "text", "default_price": "text"}
    | {"updated": "timestamptz"},
    "refunds": _MONEY
    | {"charge": "text", "payment_intent": "text", "balance_transaction": "text", "reason": "text"}
    | {"failure_reason": "text"},
    "subscriptions": {"status": "text", "customer": "text", "currency": "text", "items": "jsonb"}
    | {"current_period_start": "timestamptz", "current_period_end": "timestamptz", "start_date": "timestamptz"}
    | {"trial_start": "timestamptz", "trial_end": "timestamptz", "cancel_at": "timestamptz"}
    | {"canceled_at": "timestamptz", "ended_at": "timestamptz", "cancel_at_period_end": "boolean"},
}
CHILDREN: Final[Mapping[str, dict[str, Any]]] = {
    "invoice_lines": {
        "parent": "invoices",
        "explode": "lines.data",
        "continued": {"more": "lines.has_more", "url": "lines.url", "params": {"limit": 100}},
        "columns": {"id": "text", "object": "text", "amount": "bigint", "currency": "text", "description": "text"}
        | {"period": "jsonb", "price": "jsonb", "quantity": "bigint", "subscription": "text", "metadata": "jsonb"},
    },
    "subscription_items": {
        "parent": "subscriptions",
        "explode": "items.data",
        "continued": {"more": "items.has_more", "url": "items.url", "params": {"limit": 100}},
        "columns": {"id": "text", "object": "text", "created": "timestamptz", "price": "jsonb", "quantity": "bigint"}
        | {"metadata": "jsonb"},
        "epochs": ["created"],
    },
}
"""Lists within objects, of which these show ten elements."""
_PARAMS: Final[Mapping[str, dict[str, str]]] = {"subscriptions": {"status": "all"}}


def stripe(config: StripeConfig) -> Preset:
    account = {} if config.account is None else {"Stripe-Account": config.account}
    return Preset(
        name="stripe",
        config=RestConfig.model_validate(
            {
                "base_url": config.base_url,
                "auth": {"type": "bearer", "token": config.api_key},
                "headers": {"Stripe-Version": config.version, **account},
                "pagination": {"type": "last_record", "more": "has_more"},
                **config.requests(retry=config.retry),
            }
        ),
        tables={
            **{name: _table(name, _COMMON | columns) for name, columns in TABLES.items()},
            **{name: TableSpec.model_validate({**said, "name": name}) for name, said in CHILDREN.items()},
        },
        hints=BackfillSpec(rate_budget="25/s"),
    )


def _table(name: str, columns: Mapping[str, str]) -> TableSpec:
    return TableSpec.model_validate(
        {
            "name": name,
            "path": f"/{name}",
            "params": {"limit": 100, **_PARAMS.get(name, {})},
            "records": "data",
            "primary_key": ["id"],
            "incremental": "created",
            "cursor_params": _CREATED,
            "columns": columns,
            "epochs": [column for column, type_ in columns.items() if type_ == "timestamptz"],
            "backfill": {"window": "1mo", "start_from": _BEFORE_STRIPE},
        }
    )
