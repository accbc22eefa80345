CREATE INDEX threads_meta_by_count ON threads_meta (user_id, status);
ALTER TABLE threads_meta SET (autovacuum_vacuum_scale_factor = 0.02);
ALTER TABLE thread_facts SET (autovacuum_vacuum_scale_factor = 0.02);
