package site.vertx;

import io.vertx.core.Future;
import io.vertx.ext.web.Router;
import io.vertx.ext.web.RoutingContext;
import io.vertx.sqlclient.Pool;
import io.vertx.sqlclient.Row;
import io.vertx.sqlclient.SqlClient;
import io.vertx.sqlclient.Tuple;
import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import site.Rules;
import site.World;

final class Worlds {
    private final Pool pool;

    Worlds(Pool pool) {
        this.pool = pool;
    }

    void addTo(Router router) {
        router.get("/db").respond(request -> read(pool));
        router.get("/queries").respond(request -> pool.withConnection(one -> read(one, count(request))));
        router.get("/updates").respond(request -> update(count(request)));
    }

    private static int count(RoutingContext request) {
        return Rules.queries(request.request().getParam("queries"));
    }

    private static Future<World> read(SqlClient client) {
        return client.preparedQuery("SELECT id, randomnumber FROM world WHERE id = $1")
                .execute(Tuple.of(Rules.random()))
                .map(rows -> {
                    Row row = rows.iterator().next();
                    return new World(row.getInteger(0), row.getInteger(1));
                });
    }

    /** That many statements, which the connection pipelines. */
    private static Future<List<World>> read(SqlClient client, int count) {
        List<Future<World>> worlds = IntStream.range(0, count).mapToObj(i -> read(client)).toList();
        return Future.all(worlds).map(all -> all.<World>list());
    }

    private Future<List<World>> update(int count) {
        return pool.withTransaction(client -> read(client, count).compose(read -> {
            // Transactions that lock rows in the same order can't block each other.
            List<World> worlds = read.stream()
                    .map(World::withNewNumber)
                    .sorted(Comparator.comparing(World::id))
                    .toList();
            List<Tuple> values = worlds.stream()
                    .map(world -> Tuple.of(world.id(), world.randomNumber()))
                    .toList();
            return client.preparedQuery("UPDATE world SET randomnumber = $2 WHERE id = $1")
                    .executeBatch(values)
                    .map(worlds);
        }));
    }
}
