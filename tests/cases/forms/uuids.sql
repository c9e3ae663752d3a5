-- uuid keys everywhere, by default; foreign keys of them, also unique ones, also of several columns.
CREATE TABLE accounts (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), email varchar(320) NOT NULL UNIQUE, created_at timestamptz NOT NULL DEFAULT now());
CREATE TABLE profiles (account_id uuid PRIMARY KEY REFERENCES accounts ON DELETE CASCADE, display_name text, settings jsonb NOT NULL DEFAULT '{}');
CREATE TABLE projects (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), owner_id uuid NOT NULL REFERENCES accounts, slug text NOT NULL,
  archived_at timestamptz, UNIQUE (owner_id, slug));
CREATE TABLE memberships (project_id uuid REFERENCES projects, account_id uuid REFERENCES accounts, role text NOT NULL
  CHECK (role = ANY (ARRAY['owner', 'admin', 'member'])), PRIMARY KEY (project_id, account_id));
CREATE TABLE tasks (id uuid PRIMARY KEY DEFAULT gen_random_uuid(), project_id uuid NOT NULL, assignee_id uuid, parent_id uuid REFERENCES tasks,
  title text NOT NULL, state text NOT NULL DEFAULT 'open' CHECK (state IN ('open', 'done')), due date, tags text[] NOT NULL DEFAULT '{}',
  FOREIGN KEY (project_id, assignee_id) REFERENCES memberships (project_id, account_id));
CREATE TABLE events (id uuid DEFAULT gen_random_uuid(), at timestamptz NOT NULL, task_id uuid NOT NULL REFERENCES tasks, payload jsonb,
  PRIMARY KEY (id, at)) PARTITION BY RANGE (at);
CREATE TABLE events_2024 PARTITION OF events FOR VALUES FROM ('2024-01-01') TO ('2025-01-01');
CREATE TABLE events_2025 PARTITION OF events FOR VALUES FROM ('2025-01-01') TO ('2026-01-01');
