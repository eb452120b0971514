-- A copy of each table in a database of its own, from which restore.sql fills them again.
DELIMITER //
BEGIN NOT ATOMIC
    DROP DATABASE IF EXISTS webdyno_kept;
    CREATE DATABASE webdyno_kept;
    FOR it IN (
        SELECT TABLE_NAME AS name, GROUP_CONCAT('`', COLUMN_NAME, '`') AS columns
        FROM information_schema.TABLES JOIN information_schema.COLUMNS
        USING (TABLE_SCHEMA, TABLE_NAME)
        WHERE TABLE_SCHEMA = 'site' AND TABLE_TYPE = 'BASE TABLE' AND IS_GENERATED = 'NEVER'
        GROUP BY TABLE_NAME
    ) DO
        EXECUTE IMMEDIATE CONCAT(
            'CREATE TABLE webdyno_kept.`', it.name, '` AS SELECT ', it.columns,
            ' FROM site.`', it.name, '`'
        );
    END FOR;
END //
