-- A copy of each table beside them, by which restore.sql knows and undoes what was changed since.
SET client_min_messages = error;
DROP SCHEMA IF EXISTS webdyno_kept CASCADE;
VACUUM (ANALYZE);
CREATE SCHEMA webdyno_kept;
CREATE TABLE webdyno_kept.tables (
    it regclass, copy text, columns text, rows bigint, since xid, is_new boolean
);
DO $$
DECLARE
    it record;
    copied bigint;
BEGIN
    FOR it IN
        SELECT c.oid::regclass AS name, 'of_' || c.oid AS copy, (
            SELECT string_agg(quote_ident(attname), ', ' ORDER BY attnum) FROM pg_attribute
            WHERE attrelid = c.oid AND attnum > 0 AND NOT attisdropped AND attgenerated = ''
        ) AS columns
        FROM pg_class c JOIN pg_namespace n ON n.oid = relnamespace
        WHERE relkind = 'r' AND nspname !~ '^(pg_|information_schema$|webdyno_)'
    LOOP
        CONTINUE WHEN it.columns IS NULL;
        EXECUTE format(
            'CREATE TABLE webdyno_kept.%I WITH (autovacuum_enabled = false, '
            'toast.autovacuum_enabled = false) AS '
            'SELECT %s FROM ONLY %s', it.copy, it.columns, it.name
        );
        GET DIAGNOSTICS copied = ROW_COUNT;
        INSERT INTO webdyno_kept.tables
        VALUES (it.name, it.copy, it.columns, copied, pg_current_xact_id()::xid, false);
    END LOOP;
END $$;
CREATE TABLE webdyno_kept.sequences AS
SELECT format('%I.%I', schemaname, sequencename)::regclass AS it, start_value, last_value
FROM pg_sequences;
CHECKPOINT;
