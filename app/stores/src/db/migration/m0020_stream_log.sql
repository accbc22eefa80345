CREATE TABLE stream_log (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    last_seq BIGINT NOT NULL,
    first_seq BIGINT NOT NULL,
    attempt BIGINT NOT NULL,
    ended TEXT,
    frames {BYTES} NOT NULL,
    PRIMARY KEY (run_id, last_seq)
);
