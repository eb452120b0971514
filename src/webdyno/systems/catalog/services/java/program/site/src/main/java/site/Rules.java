package site;

import java.util.concurrent.ThreadLocalRandom;

/** What requests may ask for. */
public final class Rules {
    private Rules() {}

    /** The number of queries: from 1 to 500. */
    public static int queries(String text) {
        return Math.min(whole(text), 500);
    }

    /** The number of a page, from 1. */
    public static int page(String text) {
        return whole(text);
    }

    /** The id of an item. */
    public static int id(String text) {
        try {
            return Integer.parseInt(text);
        } catch (NumberFormatException error) {
            throw new NotFoundException();
        }
    }

    /** The id of a row of the table world, or its new number. */
    public static int random() {
        return ThreadLocalRandom.current().nextInt(1, 10_001);
    }

    private static int whole(String text) {
        try {
            return (int) Math.min(Math.max(Long.parseLong(text), 1), Integer.MAX_VALUE);
        } catch (NumberFormatException error) {
            return 1;
        }
    }
}
