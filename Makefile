# Python 3.11 or newer is all that a machine needs: `make setup` brings the rest into .venv.
PYTHON ?= $(shell for p in python3.11 python3.12 python3.13 python3; do \
	"$$p" -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null && echo "$$p" && break; done)
PY := .venv/bin/python
SPARK_LAST := tests/behaviour/test_engines.py tests/spark/test_cluster_engine.py tests/spark/test_killed_expiry.py \
	tests/spark/test_s3.py tests/spark/test_undo.py
CODE := airflow_hudi_maint benchmarks dags demo scripts tests

.DEFAULT_GOAL := help
.PHONY: help setup demo test check lint format bench proof golden constraints clean

help: ## Show these targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z]+):.*## (.*)/\1|\2/' | \
		while IFS='|' read -r name text; do printf '  make %-8s %s\n' "$$name" "$$text"; done

setup: ## Make .venv with everything; skipped in an instant when it is done
	@$(or $(PYTHON),python3) scripts/setup.py

demo: setup ## Write a Hudi table of 336,776 flights and let the DAG maintain it
	@$(PY) -m demo.run

test: setup lint ## Run every check and test, with Spark, Hudi and Airflow
	@# Two cores: most of Spark's tests, which are the longest, run beside all others and then beside the rest of them.
	@mkdir -p build; \
	$(PY) -m pytest -m spark --durations=15 $(SPARK_LAST:%=--ignore=%) > build/spark-tests.log 2>&1 & spark=$$!; \
	$(PY) -m pytest -m "not spark" --durations=15; rest=$$?; \
	$(PY) -m pytest -m spark --durations=15 $(SPARK_LAST); last=$$?; \
	wait $$spark; code=$$?; \
	cat build/spark-tests.log; \
	test $$code -eq 0 && test $$rest -eq 0 && test $$last -eq 0

check: setup lint ## Run the fast part: lint, unit, property and storage tests; no JVM, no Airflow server
	@$(PY) -m pytest tests/unit tests/property tests/behaviour -n 2 -m "not spark and not airflow and not slow"

lint: setup ## Check style, format, types and the layers
	@$(PY) -m ruff check $(CODE)
	@$(PY) -m ruff format --check $(CODE)
	@$(PY) -m mypy
	@.venv/bin/lint-imports --no-cache

format: setup ## Format the code and mend what ruff can mend
	@$(PY) -m ruff check --fix-only --quiet $(CODE)
	@$(PY) -m ruff format $(CODE)

bench: setup ## Measure against the limits in benchmarks/README.md
	@$(PY) benchmarks/run.py

proof: setup ## Run the long proofs, about half an hour: every way of a kill, 50 commits beside clustering, S3, deferral, YARN
	@$(PY) -m pytest -m proof tests/spark

golden: setup ## Make the golden tables of tests/golden again with real Hudi
	@$(PY) tests/golden/remake.py --bundles-dir $${AIRFLOW_HUDI_MAINT_CACHE:-$$HOME/.cache/airflow-hudi-maint}/jars

constraints: setup ## Pin every dependency again at its newest version
	@$(PY) -m uv --version >/dev/null 2>&1 || $(PY) -m pip install --quiet uv
	@$(PY) -m uv pip compile pyproject.toml --all-extras --universal --python-version 3.11 --upgrade --quiet \
		--no-header --no-annotate --no-emit-index-url --no-emit-find-links --output-file constraints.txt

clean: ## Remove what the targets made, the shared bundle cache excepted
	rm -rf .venv .setup.lock .demo .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis build dist
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
