package site.spring;

import org.springframework.jdbc.core.JdbcTemplate;
import org.springframework.jdbc.core.RowMapper;
import org.springframework.stereotype.Repository;
import site.Item;
import site.Items;
import site.NewItem;
import site.NotFoundException;

@Repository
class ItemRepository {
    private static final RowMapper<Item> ITEM = (row, number) ->
            new Item(row.getInt("id"), row.getString("name"), row.getInt("price"), row.getInt("version"));

    private final JdbcTemplate jdbc;

    ItemRepository(JdbcTemplate jdbc) {
        this.jdbc = jdbc;
    }

    Items page(int page) {
        long total = jdbc.queryForObject("SELECT count(*) FROM item", Long.class);
        return Items.of(page, total, jdbc.query(
                "SELECT id, name, price, version FROM item ORDER BY id LIMIT ? OFFSET ?",
                ITEM, Items.PER_PAGE, Items.offset(page)));
    }

    Item find(int id) {
        return one("SELECT id, name, price, version FROM item WHERE id = ?", id);
    }

    Item add(NewItem item) {
        return one(
                "INSERT INTO item (name, price) VALUES (?, ?) RETURNING id, name, price, version",
                item.name(), item.price());
    }

    Item update(int id, NewItem item) {
        return one(
                "UPDATE item SET name = ?, price = ?, version = version + 1 WHERE id = ?"
                        + " RETURNING id, name, price, version",
                item.name(), item.price(), id);
    }

    void delete(int id) {
        if (jdbc.update("DELETE FROM item WHERE id = ?", id) == 0) {
            throw new NotFoundException();
        }
    }

    private Item one(String statement, Object... values) {
        return jdbc.query(statement, ITEM, values).stream().findFirst().orElseThrow(NotFoundException::new);
    }
}
