package site;

/** A row of that table. */
public record World(int id, int randomNumber) {
    public World withNewNumber() {
        return new World(id, Rules.random());
    }
}
