PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed

# uv brings certificates of its own; where the machine has some, they count, as they do for pip: a proxy's are there.
MACHINE_CERTS := $(wildcard /etc/ssl/certs/ca-certificates.crt /etc/ssl/cert.pem /etc/pki/tls/certs/ca-bundle.crt)
export UV_SYSTEM_CERTS ?= $(if $(MACHINE_CERTS),1,0)

.PHONY: demo serve test soak bench lint lock docs clean

demo: $(STAMP)          ## load made-up shop data, end to end
	@$(BIN)/hakiri demo

serve: $(STAMP)         ## the Dagster UI on the demo project
	@$(BIN)/hakiri serve

test: $(STAMP)          ## the whole suite
	@$(BIN)/python tests/side_by_side.py

soak: $(STAMP)          ## long kill and chaos loops; KILLS=100, WORKERS=1, SEEDS=20 and SECONDS=60 by default
	@HAKIRI_SOAK_KILLS=$(or $(KILLS),100) HAKIRI_SOAK_WORKERS=$(or $(WORKERS),1) \
		HAKIRI_SOAK_SEEDS=$(or $(SEEDS),20) HAKIRI_SOAK_SECONDS=$(or $(SECONDS),60) \
		$(BIN)/python -m pytest tests/acceptance/test_soak.py tests/acceptance/test_backfill_soak.py \
		tests/acceptance/test_busy_source.py tests/integration/orchestration/test_renamed_pipelines.py -s

bench: $(STAMP)         ## measured ratios, written to bench/RESULTS.md
	@$(BIN)/python bench/run.py $(BENCH)

lint: $(STAMP)          ## linters, types, layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

lock:                   ## compile the lock again, without index addresses
	$(BIN)/uv pip compile pyproject.toml --extra dev --extra bench --python-version 3.11 --universal \
		--generate-hashes --no-emit-index-url --no-header -o requirements.txt

docs: $(STAMP)          ## what is generated from the model: docs/manifest.md and schemas/
	@$(BIN)/python -m hakiri_dagster.manifest.generate

$(STAMP): requirements.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
		|| { echo 'Python 3.11 or newer is needed: make PYTHON=python3.12 …' >&2; exit 1; }
	@test -x $(BIN)/pip || $(PYTHON) -m venv $(VENV)
	@test -x $(BIN)/uv || $(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	@$(BIN)/uv pip sync --quiet --python $(BIN)/python --require-hashes requirements.txt
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@touch $(STAMP)

clean:
	rm -rf $(VENV) .hakiri
