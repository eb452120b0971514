-- Fills all tables again as they were when snapshot.sql ran. Connections stay.
SET foreign_key_checks = 0;
SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO';
SET lock_wait_timeout = 10;
DELIMITER //
BEGIN NOT ATOMIC
    FOR it IN (
        SELECT TABLE_NAME AS name, GROUP_CONCAT('`', COLUMN_NAME, '`') AS columns
        FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = 'webdyno_kept' GROUP BY TABLE_NAME
    ) DO
        EXECUTE IMMEDIATE CONCAT('TRUNCATE site.`', it.name, '`');
        EXECUTE IMMEDIATE CONCAT(
            'INSERT INTO site.`', it.name, '` (', it.columns, ') SELECT ', it.columns,
            ' FROM webdyno_kept.`', it.name, '`'
        );
        -- Else statements are planned for an empty table until the server counts it by itself.
        EXECUTE IMMEDIATE CONCAT('ANALYZE NO_WRITE_TO_BINLOG TABLE site.`', it.name, '`');
    END FOR;
END //
