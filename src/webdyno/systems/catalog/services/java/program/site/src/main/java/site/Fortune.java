package site;

/** A row of that table; sorted by message. */
public record Fortune(int id, String message) implements Comparable<Fortune> {
    public static final Fortune ADDITIONAL = new Fortune(0, "Additional fortune added at request time.");

    @Override
    public int compareTo(Fortune other) {
        // String.compareTo has another order: that of UTF-16's units, not of code points.
        int common = Math.min(message.length(), other.message.length());
        for (int i = 0; i < common; i++) {
            if (message.charAt(i) != other.message.charAt(i)) {
                return Integer.compare(message.codePointAt(i), other.message.codePointAt(i));
            }
        }
        return Integer.compare(message.length(), other.message.length());
    }
}
