CREATE TABLE tool_calls (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    call_key TEXT NOT NULL,
    result_json TEXT,
    PRIMARY KEY (run_id, call_key)
);
