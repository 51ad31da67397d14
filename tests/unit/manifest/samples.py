"""The sample manifests of the seed documents and of the design."""

SEED_PROJECT = """\
[project]
name = "openhackers-warehouse"
version = "0.1.0"

[context]
path = ".hakiri/context"             # local store location
default_destination = "context"      # all pipelines land here unless overridden

[sync]
bucket = "r2://oh-context"
endpoint = "https://<accountid>.r2.cloudflarestorage.com"
region = "auto"
# credentials via env: HAKIRI_SYNC_KEY_ID / HAKIRI_SYNC_KEY_SECRET

[[pipeline]]
id = "github-issues"
source = { connector = "github", config = { repo = "OpenHackersClub/gctrl" } }
tables = ["issues", "pull_requests", "comments"]
schedule = "every 15m"
incremental = "updated_at"           # cursor strategy

[[pipeline]]
id = "shopify-orders"
source = { connector = "shopify", config = { shop = "openhackers" } }
secrets = ["SHOPIFY_TOKEN"]
tables = ["orders", "customers", "products"]
schedule = "0 */2 * * *"             # cron
incremental = "updated_at"
destination = { connector = "context" }  # explicit
"""

SEED_JSON = """\
{
  "$schema": "https://hakiri.dev/schemas/v1/pipeline.json",
  "id": "github-issues",
  "source": { "connector": "github", "config": { "repo": "OpenHackersClub/gctrl" } },
  "tables": ["issues", "pull_requests", "comments"],
  "schedule": "every 15m",
  "incremental": "updated_at"
}
"""

SEED_BACKFILL = """\
[[pipeline]]
id = "github-issues-historical"
source = { connector = "github", config = { repo = "torvalds/linux" } }
tables = ["issues"]
incremental = "updated_at"

[pipeline.backfill]
  window = "30d"                # one chunk per 30-day slice
  parallelism = 4               # how many chunks in flight
  rate_budget = "60/min"        # cap source requests
  start_from = "2010-01-01"     # don't go further back than this
  max_chunks_per_tick = 8       # how many chunks to dispatch per scheduler tick
"""

SEED_QUALITY = """\
{
  "id": "orders",
  "source": { "connector": "postgres", "config": { "schema": "shop" } },
  "tables": ["orders"],
  "datasetLevel": {
    "rowCount":     { "min": 100, "max": 1000000, "onFail": "abort" },
    "freshness":    { "withinHours": 24, "column": "updated_at", "onFail": "warn" },
    "fkIntegrity":  { "column": "customer_id", "refTable": "starbucks.customers", "refColumn": "id", "onFail": "abort" },
    "cardinality":  { "column": "country", "minDistinct": 5, "onFail": "warn" },
    "duplicateKey": { "columns": ["customer_id", "order_date"], "onFail": "abort" }
  },
  "rowLevel": [
    { "type": "notNull",   "field": "id",     "onFail": "abort" },
    { "type": "regex",     "field": "email",  "pattern": "^.+@.+$", "onFail": "skip" },
    { "type": "range",     "field": "age",    "min": 0, "max": 150, "onFail": "warn" },
    { "type": "maxLength", "field": "name",   "max": 200, "onFail": "skip" },
    { "type": "fieldType", "field": "id",     "expected": "uuid", "onFail": "abort" }
  ],
  "quarantine": { "enabled": true, "table": "dlq.orders" },
  "preHook": { "type": "sql", "statement": "ANALYZE" },
  "postHook": [
    { "type": "refresh_mat_view", "view": "public.totals" },
    { "type": "webhook", "url": "https://example.com/done" },
    { "type": "custom_function", "function": "done" }
  ],
  "loadMode": "incremental_watermark",
  "watermarkColumn": "updated_at",
  "expectedRowCountDelta": { "windowRuns": 7, "minRatio": 0.5, "maxRatio": 2.0 },
  "onMissAction": "alert",
  "backupBeforeLoad": true,
  "failOnEmptySource": false
}
"""  # noqa: E501  # the lines are as the seed has them

DESIGN_PROJECT = """\
[project]
name = "shop"
version = "0.1.0"

[context]
default_destination = "warehouse"

[audit]                            # optional
# url = "${AUDIT_URL}"             # no url: SQLite in .hakiri/

[destinations.warehouse]
connector = "postgres"
config = { url = "${WAREHOUSE_URL}", schema = "raw" }   # no url: the embedded PostgreSQL

[[pipeline]]
id = "shop-orders"
source = { connector = "postgres", config = { url = "${SHOP_URL}", schema = "public" } }
schedule = "every 15m"            # or cron: "0 */2 * * *"
incremental = "updated_at"
tables = ["customers", { name = "orders", primary_key = ["order_id"], load = { mode = "upsert", upsert_key = ["order_id"] } }]

[pipeline.backfill]
window = "1mo"                    # 15m 6h 30d 1w 1mo 1q 1y, or a number of ids: 100000
start_from = "2020-01-01"
parallelism = 4
max_chunks_per_tick = 8
rate_budget = "60/min"
"""  # noqa: E501  # the lines are as the design has them

DESIGN_QUALITY = """
[pipeline.validate.dataset_level]
row_count = { min = 100, max = 1000000, on_fail = "abort" }
freshness = { within_hours = 24, column = "updated_at", on_fail = "warn" }

[[pipeline.validate.row_level]]
type = "regex"
field = "email"
pattern = "^.+@.+$"
on_fail = "skip"

[pipeline.validate]
quarantine = { enabled = true, table = "dlq.orders" }
"""

DESIGN_ENV = {
    "WAREHOUSE_URL": "postgresql://loader:wh-s3cret@db.example.com/warehouse",
    "SHOP_URL": "postgresql://reader:sh-s3cret@db.example.com/shop",
}

FILES = """\
id = "{id}"
source = {{ connector = "files", config = {{ path = "data" }} }}
tables = ["{table}"]
"""


def files_pipeline(pipeline_id: str = "shop", table: str = "orders", more: str = "") -> str:
    return FILES.format(id=pipeline_id, table=table) + more


POSTGRES = """\
id = "{id}"
source = {{ connector = "postgres", config = {{ schema = "shop" }} }}
tables = {tables}
"""


def postgres_pipeline(tables: str, pipeline_id: str = "shop", more: str = "") -> str:
    """`tables` is TOML."""
    return POSTGRES.format(id=pipeline_id, tables=tables) + more
