package site;

import java.util.List;

/** One page of the list of items. */
public record Items(int page, long pages, long total, List<Item> items) {
    public static final int PER_PAGE = 20;

    public static Items of(int page, long total, List<Item> items) {
        return new Items(page, (total + PER_PAGE - 1) / PER_PAGE, total, items);
    }

    /** How many items go before those of a page. */
    public static long offset(int page) {
        return (page - 1L) * PER_PAGE;
    }
}
