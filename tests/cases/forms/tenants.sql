-- Many tenants in the same tables: each key begins with the tenant, and foreign keys share it; row-level security.
CREATE TABLE tenants (id integer GENERATED ALWAYS AS IDENTITY PRIMARY KEY, name text NOT NULL UNIQUE, plan text NOT NULL DEFAULT 'free');
CREATE TABLE users (tenant_id integer NOT NULL REFERENCES tenants, id bigint NOT NULL, email text NOT NULL, PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, email));
CREATE TABLE projects (tenant_id integer NOT NULL REFERENCES tenants, id bigint NOT NULL, name text NOT NULL, lead_id bigint,
  PRIMARY KEY (tenant_id, id), FOREIGN KEY (tenant_id, lead_id) REFERENCES users (tenant_id, id));
CREATE TABLE tickets (tenant_id integer NOT NULL REFERENCES tenants, id bigint NOT NULL, project_id bigint NOT NULL, reporter_id bigint NOT NULL,
  number integer NOT NULL, opened timestamptz NOT NULL, closed timestamptz, CHECK (closed >= opened), PRIMARY KEY (tenant_id, id),
  UNIQUE (tenant_id, project_id, number), FOREIGN KEY (tenant_id, project_id) REFERENCES projects (tenant_id, id),
  FOREIGN KEY (tenant_id, reporter_id) REFERENCES users (tenant_id, id));
CREATE TABLE comments (tenant_id integer NOT NULL, id bigint NOT NULL, ticket_id bigint NOT NULL, author_id bigint NOT NULL, body text NOT NULL,
  PRIMARY KEY (tenant_id, id), FOREIGN KEY (tenant_id, ticket_id) REFERENCES tickets (tenant_id, id),
  FOREIGN KEY (tenant_id, author_id) REFERENCES users (tenant_id, id));
ALTER TABLE tickets ENABLE ROW LEVEL SECURITY;
CREATE POLICY own ON tickets USING (tenant_id = current_setting('app.tenant', true)::int);
