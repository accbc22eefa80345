ALTER TABLE runs ADD COLUMN place BIGINT NOT NULL DEFAULT 0;
ALTER TABLE runs ADD COLUMN due_at BIGINT;
ALTER TABLE runs ADD COLUMN started_at BIGINT;
UPDATE runs SET due_at = created_at WHERE status = 'pending';
