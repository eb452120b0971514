-- Counts the rows of all tables, so that statements are planned for them.
DELIMITER //
BEGIN NOT ATOMIC
    FOR it IN (
        SELECT TABLE_NAME AS name FROM information_schema.TABLES
        WHERE TABLE_SCHEMA = 'site' AND TABLE_TYPE = 'BASE TABLE'
    ) DO
        EXECUTE IMMEDIATE CONCAT('ANALYZE NO_WRITE_TO_BINLOG TABLE site.`', it.name, '`');
    END FOR;
END //
