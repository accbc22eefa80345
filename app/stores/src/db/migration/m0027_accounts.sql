CREATE TABLE accounts (
    account_id TEXT NOT NULL PRIMARY KEY,
    email TEXT NOT NULL,
    role TEXT NOT NULL,
    password_hash TEXT,
    provider TEXT,
    subject TEXT,
    needs_setup BOOLEAN NOT NULL,
    disabled_at BIGINT,
    created_at BIGINT NOT NULL,
    updated_at BIGINT NOT NULL,
    last_login_at BIGINT
);
CREATE UNIQUE INDEX accounts_by_email ON accounts (email);
CREATE UNIQUE INDEX accounts_by_identity ON accounts (provider, subject) WHERE provider IS NOT NULL;
CREATE INDEX accounts_by_creation ON accounts (created_at, account_id);
CREATE INDEX accounts_by_role ON accounts (role, account_id);
CREATE TABLE sessions (
    session_id TEXT NOT NULL PRIMARY KEY,
    user_id TEXT NOT NULL,
    token_hash TEXT NOT NULL,
    created_at BIGINT NOT NULL,
    last_used_at BIGINT NOT NULL,
    ends_at BIGINT NOT NULL,
    persistent BOOLEAN NOT NULL,
    user_agent TEXT,
    address TEXT
);
CREATE UNIQUE INDEX sessions_by_token ON sessions (token_hash);
CREATE INDEX sessions_by_user ON sessions (user_id, created_at);
CREATE INDEX sessions_by_end ON sessions (ends_at);
CREATE TABLE login_attempts (
    attempt_id TEXT NOT NULL PRIMARY KEY,
    subject TEXT NOT NULL,
    address TEXT NOT NULL,
    failed BOOLEAN NOT NULL,
    attempted_at BIGINT NOT NULL
);
CREATE INDEX login_attempts_by_subject ON login_attempts (subject, attempted_at);
CREATE INDEX login_attempts_by_address ON login_attempts (address, attempted_at);
CREATE INDEX login_attempts_by_time ON login_attempts (attempted_at);
CREATE TABLE login_addresses (
    subject TEXT NOT NULL,
    address TEXT NOT NULL,
    used_at BIGINT NOT NULL,
    PRIMARY KEY (subject, address)
);
CREATE INDEX login_addresses_by_time ON login_addresses (used_at);
CREATE TABLE registrations (
    seq {SEQ} PRIMARY KEY{INCREMENT},
    address TEXT NOT NULL,
    registered_at BIGINT NOT NULL
);
CREATE INDEX registrations_by_address ON registrations (address, registered_at);
CREATE INDEX registrations_by_time ON registrations (registered_at);
CREATE TABLE audit (
    seq {SEQ} PRIMARY KEY{INCREMENT},
    recorded_at BIGINT NOT NULL,
    actor TEXT,
    address TEXT,
    agent TEXT,
    action TEXT NOT NULL,
    object TEXT,
    outcome TEXT NOT NULL
);
CREATE INDEX audit_by_actor ON audit (actor, seq);
CREATE INDEX audit_by_object ON audit (object, seq);
CREATE INDEX audit_by_action ON audit (action, seq);
CREATE INDEX audit_by_time ON audit (recorded_at);
