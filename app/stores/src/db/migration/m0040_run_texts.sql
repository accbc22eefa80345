CREATE TABLE run_texts (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    column_name TEXT NOT NULL,
    column_text TEXT NOT NULL,
    PRIMARY KEY (run_id, column_name)
);
