package site;

/** A row of that table. */
public record Item(int id, String name, int price, int version) {
    /** What is different for each version of an item. */
    public String tag() {
        return "\"" + version + "\"";
    }
}
