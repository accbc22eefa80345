ALTER TABLE threads_meta ADD COLUMN run_assistant_id TEXT;
ALTER TABLE threads_meta ADD COLUMN state_updated_at BIGINT NOT NULL DEFAULT 0;
ALTER TABLE threads_meta ADD COLUMN ttl_micros BIGINT;
UPDATE threads_meta SET state_updated_at = updated_at;

UPDATE threads_meta SET display_name = substr(display_name, 1, 500) WHERE length(display_name) > 500;
UPDATE threads_meta SET assistant_id = substr(assistant_id, 1, 128) WHERE length(assistant_id) > 128;

CREATE INDEX threads_meta_by_update ON threads_meta (user_id, updated_at DESC, thread_id DESC);
CREATE INDEX threads_meta_by_state_update ON threads_meta (user_id, state_updated_at DESC, thread_id DESC);
CREATE INDEX threads_meta_by_creation ON threads_meta (user_id, created_at DESC, thread_id DESC);
CREATE INDEX threads_meta_by_status ON threads_meta (user_id, status DESC, updated_at DESC, thread_id DESC);
CREATE INDEX threads_meta_by_id ON threads_meta (user_id, thread_id);
CREATE INDEX threads_meta_by_graph ON threads_meta (user_id, assistant_id, thread_id);
CREATE INDEX threads_meta_by_assistant ON threads_meta (user_id, run_assistant_id, thread_id);
CREATE INDEX threads_meta_by_title ON threads_meta (user_id, display_name);
CREATE INDEX threads_meta_by_end ON threads_meta ((updated_at + ttl_micros)) WHERE ttl_micros IS NOT NULL;

CREATE TABLE thread_facts (
    thread_id TEXT NOT NULL REFERENCES threads_meta (thread_id) ON DELETE CASCADE,
    path TEXT NOT NULL,
    value TEXT NOT NULL,
    user_id TEXT,
    PRIMARY KEY (thread_id, path, value)
);
CREATE INDEX thread_facts_by_value ON thread_facts (path, value, user_id, thread_id);
