package site;

/** What clients send of an item. */
public record NewItem(String name, int price) {
    /** Checks two values of a JSON object. */
    public static NewItem of(Object name, Object price) {
        if (!(name instanceof String text) || text.isEmpty() || text.codePointCount(0, text.length()) > 100) {
            throw new InvalidException("name must have 1 to 100 characters");
        }
        if (!(price instanceof Integer number) || number < 0) {
            throw new InvalidException("price must be a whole number, 0 or more");
        }
        return new NewItem(text, number);
    }
}
