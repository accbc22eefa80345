CREATE TABLE run_text_parts (
    run_id TEXT NOT NULL REFERENCES runs (run_id) ON DELETE CASCADE,
    column_name TEXT NOT NULL,
    part INTEGER NOT NULL,
    part_text TEXT NOT NULL,
    PRIMARY KEY (run_id, column_name, part)
);
INSERT INTO run_text_parts (run_id, column_name, part, part_text)
SELECT run_id, column_name, 0, column_text FROM run_texts;
DROP TABLE run_texts;
