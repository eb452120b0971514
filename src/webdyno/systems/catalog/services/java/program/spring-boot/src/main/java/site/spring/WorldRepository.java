package site.spring;

import java.util.Comparator;
import java.util.List;
import java.util.stream.IntStream;
import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.RowMapper;
import org.springframework.stereotype.Repository;
import org.springframework.transaction.annotation.Transactional;
import site.Rules;
import site.World;

@Repository
class WorldRepository {
    private static final RowMapper<World> WORLD =
            (row, number) -> new World(row.getInt("id"), row.getInt("randomnumber"));

    private final JdbcTemplate jdbc;

    WorldRepository(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    World random() {
        return jdbc.queryForObject(
                "SELECT id, randomnumber FROM world WHERE id = ?", WORLD, Rules.random());
    }

    List<World> random(int count) {
        return IntStream.range(0, count).mapToObj(i -> random()).toList();
    }

    @Transactional
    List<World> update(int count) {
        // Transactions that lock rows in the same order can't block each other.
        List<World> worlds = random(count).stream()
                .map(World::withNewNumber)
                .sorted(Comparator.comparing(World::id))
                .toList();
        jdbc.batchUpdate(
                "UPDATE world SET randomnumber = ? WHERE id = ?", worlds, worlds.size(), (statement, world) -> {
                    statement.setInt(1, world.randomNumber());
                    statement.setInt(2, world.id());
                });
        return worlds;
    }
}
