CREATE TABLE model_usage (
    usage_id TEXT NOT NULL PRIMARY KEY,
    run_id TEXT REFERENCES runs (run_id) ON DELETE CASCADE,
    user_id TEXT,
    model TEXT NOT NULL,
    input_tokens BIGINT NOT NULL,
    output_tokens BIGINT NOT NULL,
    total_tokens BIGINT NOT NULL,
    cache_read_tokens BIGINT NOT NULL,
    created_at BIGINT NOT NULL
);
CREATE INDEX model_usage_by_run ON model_usage (run_id);
CREATE INDEX model_usage_by_user ON model_usage (user_id, created_at);
CREATE INDEX runs_by_user ON runs (user_id, created_at DESC, run_id DESC);
