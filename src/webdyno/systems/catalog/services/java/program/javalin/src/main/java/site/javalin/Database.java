package site.javalin;

import com.zaxxer.hikari.HikariConfig;
import com.zaxxer.hikari.HikariDataSource;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.ResultSet;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import javax.sql.DataSource;

/** Statements on connections of a pool. */
record Database(DataSource pool) {
    interface Row<T> {
        T of(ResultSet row) throws SQLException;
    }

    static Database open(int connections) {
        Map<String, String> variables = System.getenv();
        HikariConfig config = new HikariConfig();
        config.setJdbcUrl("jdbc:postgresql://%s:%s/%s".formatted(
                variables.get("PGHOST"), variables.get("PGPORT"), variables.get("PGDATABASE")));
        config.setUsername(variables.get("PGUSER"));
        config.setPassword(variables.get("PGPASSWORD"));
        config.setMaximumPoolSize(connections);
        return new Database(new HikariDataSource(config));
    }

    <T> List<T> query(String sql, Row<T> row, Object... values) throws SQLException {
        try (Connection connection = pool.getConnection()) {
            return query(connection, sql, row, values);
        }
    }

    static <T> List<T> query(Connection connection, String sql, Row<T> row, Object... values) throws SQLException {
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (int i = 0; i < values.length; i++) {
                statement.setObject(i + 1, values[i]);
            }
            ResultSet rows = statement.executeQuery();
            List<T> found = new ArrayList<>();
            while (rows.next()) {
                found.add(row.of(rows));
            }
            return found;
        }
    }
}
