ALTER TABLE request_keys ADD COLUMN run_id TEXT;
ALTER TABLE request_keys ADD COLUMN values_json TEXT;
CREATE INDEX request_keys_by_run ON request_keys (run_id) WHERE run_id IS NOT NULL;
CREATE INDEX threads_meta_by_change ON threads_meta (state_updated_at, thread_id);
