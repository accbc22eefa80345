CREATE INDEX thread_facts_by_count ON thread_facts (path, value, user_id);
ALTER TABLE threads_meta SET (autovacuum_vacuum_insert_scale_factor = 0.02);
ALTER TABLE thread_facts SET (autovacuum_vacuum_insert_scale_factor = 0.02);
