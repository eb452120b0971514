-- Fills those tables again that have other rows than when snapshot.sql ran. Connections stay.
SET client_min_messages = error;
SET lock_timeout = '10s';
SET session_replication_role = replica;  -- no triggers, no checks of foreign keys
DO $$
DECLARE
    it record;
    is_changed boolean;
    changed regclass[] = '{}';
BEGIN
    UPDATE webdyno_kept.tables SET is_new = false WHERE is_new;
    FOR it IN SELECT * FROM webdyno_kept.tables LOOP
        EXECUTE format(
            'SELECT count(*) <> %s OR coalesce(bool_or(age(xmin) < age(%L::xid)), false) FROM ONLY %s',
            it.rows, it.since, it.it
        ) INTO is_changed;
        IF is_changed THEN
            changed = changed || it.it;
        END IF;
    END LOOP;
    -- What refers to a table has to be emptied together with it.
    WITH RECURSIVE reached AS (
        SELECT unnest(changed) AS it
        UNION
        SELECT conrelid::regclass FROM pg_constraint JOIN reached ON confrelid = reached.it
        WHERE contype = 'f'
    )
    SELECT array_agg(reached.it) INTO changed FROM reached;
    IF changed IS NOT NULL THEN
        EXECUTE 'TRUNCATE ONLY ' || array_to_string(changed, ', ONLY ');
        FOR it IN SELECT * FROM webdyno_kept.tables t WHERE t.it = ANY (changed) LOOP
            EXECUTE format(
                'INSERT INTO %s (%s) OVERRIDING SYSTEM VALUE SELECT %s FROM webdyno_kept.%I',
                it.it, it.columns, it.columns, it.copy
            );
            UPDATE webdyno_kept.tables t SET since = pg_current_xact_id()::xid, is_new = true
            WHERE t.it = it.it;
        END LOOP;
    END IF;
    FOR it IN SELECT * FROM webdyno_kept.sequences LOOP
        PERFORM setval(it.it, coalesce(it.last_value, it.start_value), it.last_value IS NOT NULL);
    END LOOP;
END $$;
-- Rows that are counted after VACUUM would have autovacuum do the same in the middle of a slot.
SELECT 'SELECT pg_stat_force_next_flush()' FROM pg_proc WHERE proname = 'pg_stat_force_next_flush'
\gexec
SELECT format('VACUUM (ANALYZE) %s', it) FROM webdyno_kept.tables WHERE is_new
\gexec
CHECKPOINT;
