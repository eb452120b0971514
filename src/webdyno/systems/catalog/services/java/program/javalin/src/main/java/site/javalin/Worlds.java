package site.javalin;

import io.javalin.config.RoutesConfig;
import io.javalin.http.Context;
import java.sql.Connection;
import java.sql.PreparedStatement;
import java.sql.SQLException;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import site.Rules;
import site.World;

record Worlds(Database database) {
    void addTo(RoutesConfig routes) {
        routes.get("/db", request -> request.json(read(1).get(0)));
        routes.get("/queries", request -> request.json(read(count(request))));
        routes.get("/updates", request -> request.json(update(count(request))));
    }

    private static int count(Context request) {
        return Rules.queries(request.queryParam("queries"));
    }

    private List<World> read(int count) throws SQLException {
        try (Connection connection = database.pool().getConnection()) {
            return read(connection, count);
        }
    }

    private static List<World> read(Connection connection, int count) throws SQLException {
        List<World> worlds = new ArrayList<>(count);
        for (int i = 0; i < count; i++) {
            worlds.addAll(Database.query(
                    connection,
                    "SELECT id, randomnumber FROM world WHERE id = ?",
                    row -> new World(row.getInt(1), row.getInt(2)),
                    Rules.random()));
        }
        return worlds;
    }

    private List<World> update(int count) throws SQLException {
        try (Connection connection = database.pool().getConnection()) {
            connection.setAutoCommit(false); // until it is back in the pool
            List<World> worlds = read(connection, count);
            worlds.replaceAll(World::withNewNumber);
            // Transactions that lock rows in the same order can't block each other.
            worlds.sort(Comparator.comparing(World::id));
            write(connection, worlds);
            connection.commit();
            return worlds;
        }
    }

    private static void write(Connection connection, List<World> worlds) throws SQLException {
        String sql = "UPDATE world SET randomnumber = ? WHERE id = ?";
        try (PreparedStatement statement = connection.prepareStatement(sql)) {
            for (World world : worlds) {
                statement.setInt(1, world.randomNumber());
                statement.setInt(2, world.id());
                statement.addBatch();
            }
            statement.executeBatch();
        }
    }
}
