# Everyday commands. `make` lists them.

.DEFAULT_GOAL := help

.PHONY: help
help: ## List these commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

.PHONY: dev
dev: config.yaml ## Run the gateway from source, with config.yaml (created from the example if it is missing)
	cargo run -p deerflow-server -- serve

config.yaml:
	cp config.example.yaml $@

.PHONY: config
config: ## Create config.yaml from the example; fails if it exists
	@if [ -e config.yaml ]; then echo "config.yaml exists; make config-upgrade adds new keys" >&2; exit 1; fi
	cp config.example.yaml config.yaml

.PHONY: config-upgrade
config-upgrade: ## Add the keys of a newer version to config.yaml; the old file is saved as config.yaml.bak
	cargo run -p deerflow-server -- config upgrade

.PHONY: doctor
doctor: ## Check the prerequisites of a start
	cargo run -p deerflow-server -- doctor

.PHONY: ui
ui: config.yaml ## Run DeerFlow's web UI, the gateway and nginx on port 2026: make ui UI=<checkout of DeerFlow>
	UI="$(abspath $(or $(UI),$(error UI is the checkout of DeerFlow)))" deploy/ui.sh start

.PHONY: start
start: ui ## The same as ui

.PHONY: stop
stop: ## Stop what `make start` runs
	deploy/ui.sh stop

.PHONY: up
up: config.yaml ## Build and start the web UI, a gateway and nginx on port 2026 in containers: make up UI=<checkout of DeerFlow>
	UI="$(abspath $(or $(UI),$(error UI is the checkout of DeerFlow)))" docker compose -f deploy/compose.ui.yaml up --build --detach --wait

.PHONY: down
down: ## Stop and remove these containers; the data stays
	UI="$(or $(UI),.)" docker compose -f deploy/compose.ui.yaml down

.PHONY: test
test: ## Run every test that needs only Rust
	cargo test --workspace

# The folder is new each time: cargo reuses packages of an earlier run, because a version that is published never changes.
.PHONY: package
package: ## Package the published crates and build them from their packages
	folder=$$(mktemp -d) && trap 'rm -rf "$$folder"' EXIT && CARGO_TARGET_DIR=$$folder cargo publish --dry-run \
		-p deerflow-core -p deerflow-runtime -p deerflow-models -p deerflow-flow -p deerflow-sandbox -p deerflow-harness \
		--allow-dirty --no-default-features --locked

.PHONY: test-external
test-external: ## Run the tests against the official SDKs, in a browser, on Postgres, Redis and bubblewrap (installs missing tools)
	tests/external.sh

.PHONY: test-services
test-services: ## Run the part of test-external that every change must pass: both SDKs, conformance, Postgres, Redis and bubblewrap
	tests/external.sh sdk/python sdk/js conformance postgres redis sandbox

.PHONY: chaos
chaos: ## Kill and freeze gateways repeatedly: make chaos ROUNDS=100 SEED=1
	ROUNDS=$(or $(ROUNDS),50) SEED=$(or $(SEED),1) tests/cluster/run.sh $(ARGS)

.PHONY: kill-flows
kill-flows: ## Kill a gateway repeatedly while flows run: make kill-flows ROUNDS=200 SEED=1
	cargo build --workspace --bins
	ROUNDS=$(or $(ROUNDS),50) SEED=$(or $(SEED),1) \
		cargo test --workspace --test cluster killed_gateway_repeats_no_finished_node_of_flows -- --nocapture

.PHONY: kill-channels
kill-channels: ## Kill a gateway repeatedly while people chat: make kill-channels ROUNDS=100 SEED=1
	cargo build --workspace --bins
	CHANNEL_KILL_ROUNDS=$(or $(ROUNDS),100) CHANNEL_POINT_ROUNDS=$(or $(POINT_ROUNDS),20) SEED=$(or $(SEED),1) \
		cargo test --workspace --test it channels::kills -- --nocapture

.PHONY: cluster-channels
cluster-channels: ## Kill, freeze and stop nodes while people chat on all platforms: make cluster-channels ROUNDS=100 CHATS=30 POINT_ROUNDS=20 SEED=1
	FIGURES=1 CHANNEL_KILL_ROUNDS=$(or $(ROUNDS),100) CHANNEL_CHATS=$(or $(CHATS),30) CHANNEL_POINT_ROUNDS=$(or $(POINT_ROUNDS),20) \
		SEED=$(or $(SEED),1) tests/cluster/run.sh $(or $(ARGS),channels::figures)

.PHONY: cluster-protocol
cluster-protocol: ## Reconnect readers of the streaming protocol to three nodes that die: make cluster-protocol RECONNECTS=1000 SEED=1
	RECONNECTS=$(or $(RECONNECTS),1000) SEED=$(or $(SEED),1) tests/cluster/run.sh protocol::

.PHONY: sign-in-times
sign-in-times: ## Measure the login times of known and unknown e-mails
	cargo test -p deerflow-accounts --test times -- --ignored --nocapture

.PHONY: features
features: ## Check each feature of the published crates alone (needs cargo-hack)
	cargo hack check -p deerflow-core -p deerflow-runtime -p deerflow-models -p deerflow-flow -p deerflow-sandbox \
		-p deerflow-harness --each-feature --exclude-all-features --locked

.PHONY: web-ui
web-ui: ## Test DeerFlow's web UI in a browser: make web-ui UI=<folder frontend of a checkout of DeerFlow>
	UI=$(abspath $(UI)) tests/web_ui/run.sh

.PHONY: other-systems
other-systems: ## Check the published crates for Windows and macOS, without features that need HTTP (their TLS library needs a C compiler)
	rustup target add x86_64-pc-windows-gnu aarch64-apple-darwin
	cargo check --target x86_64-pc-windows-gnu --no-default-features --locked -p deerflow-core -p deerflow-runtime -p deerflow-models
	cargo check --target aarch64-apple-darwin --no-default-features --locked -p deerflow-core -p deerflow-runtime -p deerflow-models \
		-p deerflow-flow -p deerflow-sandbox -p deerflow-harness

.PHONY: simulate
simulate: ## Simulate the runtime with injected faults, one run per seed: make simulate SEEDS=100000 FIRST_SEED=1, or SEED=17 for one
	$(if $(SEED),SEED=$(SEED) TAIL=$(or $(TAIL),100000),SEEDS=$(or $(SEEDS),100000) FIRST_SEED=$(or $(FIRST_SEED),1)) \
		cargo test --workspace --lib no_seed_violates_an_invariant -- --nocapture

.PHONY: simulate-channels
simulate-channels: ## Simulate the channel service with injected faults: make simulate-channels SEEDS=10000 FIRST_SEED=1, or SEED=17 for one
	$(if $(SEED),SEED=$(SEED),SEEDS=$(or $(SEEDS),10000) FIRST_SEED=$(or $(FIRST_SEED),1)) \
		cargo test --workspace --lib no_channel_seed_violates_an_invariant -- --nocapture

.PHONY: fuzz
fuzz: ## Fuzz a decoder with malformed input (needs cargo-fuzz): make fuzz TARGET=anthropic SECONDS=600
	cp Cargo.lock fuzz/
	mkdir -p fuzz/corpus/$(TARGET)
	cargo fuzz run --dev --sanitizer none $(TARGET) fuzz/corpus/$(TARGET) fuzz/seeds/$(TARGET) -- \
		-max_total_time=$(or $(SECONDS),60) -timeout=10 -rss_limit_mb=1024 $(ARGS)

.PHONY: fuzz-seeds
fuzz-seeds: ## Build the fuzz targets and run each once over its seeds
	fuzz/seeds.sh

.PHONY: fmt
fmt: ## Format the sources
	cargo fmt --all

.PHONY: clippy
clippy: ## Run clippy on all targets
	cargo clippy --workspace --all-targets -- -D warnings

.PHONY: lint
lint: clippy ## Check format, lints, project rules and the dependency tree
	cargo fmt --all --check
	cargo xtask boundary
	cargo xtask tidy
	cargo deny --log-level error check bans licenses sources

.PHONY: semver
semver: ## Compare the API of the published crates with an earlier commit (needs cargo-semver-checks): make semver BASELINE=v0.1.0
	cargo semver-checks --baseline-rev $(BASELINE) --all-features -p deerflow-core -p deerflow-runtime -p deerflow-models \
		-p deerflow-flow -p deerflow-sandbox -p deerflow-harness

.PHONY: bench
bench: ## Benchmark an optimized build: make bench ARGS="..."
	cargo xtask bench $(ARGS)

.PHONY: channel-figures
channel-figures: ## Measure chat channels: make channel-figures ONLY=flood,ack ARGS="--gateway target/release/deerflow"
	cargo build --workspace --bins
	cargo test --workspace --test channel_figures -- $(if $(ONLY),--only $(ONLY)) $(ARGS)

.PHONY: strangers
strangers: ## Generate attempts of strangers on chat channels: make strangers CASES=500
	STRANGER_CASES=$(or $(CASES),500) cargo test --workspace --lib no_attempt_of_a_stranger -- --nocapture

.PHONY: ci
ci: ## Run everything that CI runs
	.ci/run
