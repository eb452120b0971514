class Item < ApplicationRecord
  self.table_name = 'item'

  validates :name, length: { in: 1..100 }
  validates :price, numericality: { greater_than_or_equal_to: 0, less_than: 2**31 }
  validate :sent_as_text_and_whole_number

  private

  # Rails itself takes 5 for a name and "5" for a price.
  def sent_as_text_and_whole_number
    errors.add(:name, :invalid) unless name_before_type_cast.is_a?(String)
    errors.add(:price, :not_an_integer) unless price_before_type_cast.is_a?(Integer)
  end
end
